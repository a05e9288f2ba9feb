#include <fmt/format.h>

#include "base/json.h"
#include "cadre/faults.h"
#include "control/differences.h"
#include "control/objective.h"
#include "control/option_checks.h"
#include "tune/description.h"
#include "tune/functions.h"
#include "tune/held_options.h"
#include "tune/objects.h"
#include "tune/options/check_search_space.h"
#include "tune/options/check_stop.h"
#include "tune/options/check_trainable.h"
#include "tune/options/options.h"
#include "tune/searchers/variant_generator.h"

namespace cadre::tune {
namespace {

void check_failure_config(const FailureConfig& failure, Faults& faults) {
  faults.unless(failure.max_failures >= -1, "failure_config max_failures",
                fmt::format("it is {}; it must be 0 or more, or -1 for retries without limit", failure.max_failures));
  faults.unless(failure.max_restore_failures >= 0, "failure_config max_restore_failures",
                fmt::format("it is {}; it must be 0 or more", failure.max_restore_failures));
  faults.unless(failure.max_preemption_failures >= -1, "failure_config max_preemption_failures",
                fmt::format("it is {}; it must be -1 (unlimited) or more", failure.max_preemption_failures));
  faults.unless(!failure.fail_fast || failure.max_failures == 0, "failure_config fail_fast",
                "the first failure ends the experiment, so max_failures must be 0");
}

void check_limits(const TrialLimits& limits, Faults& faults) {
  if (limits.time) control::check_time_above_0("limits time", *limits.time, faults);
  if (limits.time_between_reports)
    control::check_time_above_0("limits time_between_reports", *limits.time_between_reports, faults);
  faults.unless(limits.memory_bytes != 0, "limits memory_bytes", "it is 0; a worker needs some memory");
}

void check_run_config(const RunConfig& run, const Objective& objective, Faults& faults) {
  control::check_name("name", run.name, run.if_exists, "experiment", faults);
  check_failure_config(run.failure_config, faults);
  check_limits(run.limits, faults);
  control::check_time("stop_grace_period", run.stop_grace_period, faults);
  control::check_publish_config("publish_config", run.publish_config, faults);
  faults.unless(run.verbose >= 0 && run.verbose <= 2, "verbose",
                fmt::format("it is {}; it must be 0, 1 or 2", run.verbose));
  control::check_retention(run.checkpoint_config, objective, faults);
  for (const auto& callback : run.callbacks)
    faults.unless(callback != nullptr, "callbacks", "one of them is a null pointer");
  const std::int64_t frequency = run.checkpoint_config.checkpoint_frequency.value_or(0);
  faults.unless(frequency >= 0, "checkpoint_config checkpoint_frequency",
                fmt::format("it is {}; it must be 0 (none by that) or more", frequency));
}

void check_searcher(const TunerOptions& options, Faults& faults) {
  const TuneConfig& tune = options.tune_config;
  check_held(tune.searcher, "searcher", options, faults);
  if (tune.searcher.empty() || option_types<Searcher, SearcherSetting>().find(tune.searcher.name()) == nullptr) return;
  const std::string name = fmt::format("searcher ({})", tune.searcher.name());
  const Searcher::Traits traits = tune.searcher.held().traits();
  faults.unless(!traits.learns || !tune.metric.name.empty(), name,
                "it learns from results, so say by which metric, in TuneConfig: .metric = "
                "tune::maximize(\"accuracy\"), or minimize");
  const bool exploits = !tune.scheduler.empty() && tune.scheduler.held().traits().exploits;
  faults.unless(
      !traits.learns || !exploits, name,
      fmt::format("it learns which configs lead to which results, and the scheduler {} changes configs during "
                  "training: use RandomSearch or QuasiRandom with it",
                  tune.scheduler.empty() ? "" : tune.scheduler.name()));
  const bool pauses = !tune.scheduler.empty() && tune.scheduler.held().traits().pauses;
  faults.unless(!traits.may_wait || !pauses, name,
                fmt::format("it waits for the end of trials, and those may wait for it under the scheduler {}: use "
                            "TuneConfig::max_concurrent_trials to limit trials",
                            tune.scheduler.empty() ? "" : tune.scheduler.name()));
  if (!traits.chooses) return;
  try {
    const Parameters parameters(options.param_space);
    faults.unless(parameters.size() > 0, name, "param_space has no domain that it could choose values from");
  } catch (const InvalidArgument& error) {
    faults.add(name, fmt::format("param_space {}", error.what()));
  }
}

// Checks that the description reads back unchanged from the store, so that every experiment that begins can be
// restored.
void check_description(const Dict& description, Faults& faults) {
  try {
    const Value stored = base::parse_json(base::to_json(description), "the options as JSON");
    for (const control::Difference& difference : control::differences(description, stored.dict())) {
      faults.add(difference.path,
                 "it would not be read back from the store as it is: text must be UTF-8, and the key \"$reference\" is "
                 "reserved");
    }
  } catch (const StorageError& error) {
    faults.add("options", std::string("they would not be read back from the store: ") + error.what());
  }
}

// Checks the search space, the number of trials, the metric and the searcher.
void check_search(const TunerOptions& options, Faults& faults) {
  check_space(options.param_space, faults);
  const TuneConfig& tune = options.tune_config;
  faults.unless(tune.num_samples >= 1, "num_samples",
                fmt::format("it is {}; at least 1 trial is needed", tune.num_samples));
  faults.unless(tune.num_samples <= kMostTrials, "num_samples", "at most 2^31 trials are possible");
  const std::string metric_fault = control::fault_of(tune.metric, tune.mode, "mode");
  faults.unless(metric_fault.empty(), "tune_config metric", metric_fault);
  check_searcher(options, faults);
}

}  // namespace

void check_search(const TunerOptions& options) {
  Faults faults;
  check_search(options, faults);
  faults.throw_if_any("the study");
  check_trials(options, faults);
  faults.throw_if_any("the study");
}

void check_options(const Trainable& trainable, const TunerOptions& options, ObjectsAre objects) {
  Faults faults;
  check_trainable(trainable, options, faults);
  check_search(options, faults);
  const TuneConfig& tune = options.tune_config;
  faults.unless(tune.max_concurrent_trials >= 0, "max_concurrent_trials",
                fmt::format("it is {}; it must be 0 (no limit) or more", tune.max_concurrent_trials));
  const Parking& parking = tune.parking;
  faults.unless(parking.max_workers.value_or(0) >= 0, "parking max_workers",
                fmt::format("it is {}; it must be 0 or more", parking.max_workers.value_or(0)));
  faults.unless(parking.min_free_memory >= 0 && parking.min_free_memory <= 1, "parking min_free_memory",
                fmt::format("it is {:g}; it must be from 0 to 1", parking.min_free_memory));
  check_held(tune.scheduler, "scheduler", options, faults);
  if (tune.time_budget) control::check_time_above_0("time_budget", *tune.time_budget, faults);
  check_run_config(options.run_config, {tune.metric.name, tune.mode}, faults);
  check_stop(options, faults);
  const Dict description = describe(trainable, options);
  check_description(description, faults);
  if (objects == ObjectsAre::held) check_objects(description, faults);
  faults.throw_if_any("the experiment");
  // The following checks draw from the space, which must be valid for that.
  check_trials(options, faults);
  faults.throw_if_any("the experiment");
  check_config_type(trainable, options, faults);
  faults.throw_if_any("the experiment");
}

}  // namespace cadre::tune
