#include "tune/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ranges>

#include "base/json.h"
#include "base/name.h"
#include "run/entries.h"
#include "tune/description.h"
#include "tune/domain.h"

namespace cadre::tune {
namespace {

// Collects what is wrong, each with the path of the option.
class Faults {
 public:
  void add(const std::string& option, const std::string& what) { text_ += "\n  " + option + ": " + what; }
  void unless(bool good, const std::string& option, const std::string& what) {
    if (!good) add(option, what);
  }
  void throw_if_any(const std::string& subject) const {
    if (!text_.empty()) throw InvalidArgument(subject + " cannot be run:" + text_);
  }

 private:
  std::string text_;
};

// ---- Search space

void check_space(const Space& space, const std::string& path, Faults& faults) {
  for (auto entry = space.begin(); entry != space.end(); ++entry) {
    const std::string& key = entry->first;
    const SpaceEntry& content = entry->second;
    const std::string name = path + "\"" + key + "\"";
    if (key.empty() || key.find('/') != key.npos) faults.add(name, "a key must not be empty or contain '/'");
    if (std::any_of(space.begin(), entry, [&](const auto& earlier) { return earlier.first == key; }))
      faults.add(name, "the key is there twice");
    if (const auto* domain = std::get_if<Domain>(&content.data())) {
      const std::string fault = fault_of(*domain);
      if (!fault.empty()) faults.add(name, to_string(*domain) + " cannot be drawn from: " + fault);
    } else if (const auto* nested = std::get_if<std::shared_ptr<const Space>>(&content.data())) {
      check_space(**nested, name + " > ", faults);
    }
  }
}

// ---- Population Based Training

std::string keys_of(const Space& space) {
  return space.empty() ? "none" : fmt::format("{}", fmt::join(std::views::keys(space), ", "));
}

// The keys that can be mutated below an entry of the search space, or nullptr for one value.
const Space* nested_space(const SpaceEntry& entry) {
  const auto* nested = std::get_if<std::shared_ptr<const Space>>(&entry.data());
  return nested == nullptr ? nullptr : nested->get();
}

bool draws_integers(const SpaceEntry& entry) {
  const auto* domain = std::get_if<Domain>(&entry.data());
  const auto* constant = std::get_if<Value>(&entry.data());
  return (domain != nullptr && std::holds_alternative<RandInt>(*domain)) ||
         (constant != nullptr && constant->is_integer());
}

bool holds_an_integer(const Domain& domain) {
  const auto between = [](double lower, double upper) { return std::ceil(lower) <= std::floor(upper); };
  if (const auto* real = std::get_if<Uniform>(&domain)) return between(real->lower, real->upper);
  if (const auto* real = std::get_if<LogUniform>(&domain)) return between(real->lower, real->upper);
  return true;
}

void check_mutations(const Mutations& mutations, const Space& space, const std::string& path, Faults& faults);

void check_mutation(const Mutation& mutation, const SpaceEntry& entry, const std::string& name, Faults& faults) {
  const Space* below = nested_space(entry);
  if (const auto* nested = std::get_if<std::shared_ptr<const Mutations>>(&mutation.data())) {
    if (below == nullptr) return faults.add(name, "nested mutations need a nested search space under this key");
    return check_mutations(**nested, *below, name + " > ", faults);
  }
  if (below != nullptr) return faults.add(name, "the search space has a nested space under this key: mutate its keys");
  if (const auto* domain = std::get_if<Domain>(&mutation.data())) {
    const std::string fault = fault_of(*domain);
    if (!fault.empty()) faults.add(name, to_string(*domain) + " cannot be drawn from: " + fault);
    if (fault.empty() && draws_integers(entry) && !holds_an_integer(*domain))
      faults.add(name, to_string(*domain) + " holds no integer, but param_space has integers under this key");
  } else {
    faults.unless(!std::get<List>(mutation.data()).empty(), name, "the list has no values");
  }
}

void check_mutations(const Mutations& mutations, const Space& space, const std::string& path, Faults& faults) {
  for (const auto& [key, mutation] : mutations) {
    const std::string name = path + "\"" + key + "\"";
    const auto entry = std::ranges::find(space, key, &Space::value_type::first);
    if (entry == space.end()) {
      faults.add(name, "param_space has no such key; it has: " + keys_of(space));
    } else {
      check_mutation(mutation, entry->second, name, faults);
    }
  }
}

void check_scheduler(const FIFO&, const TunerOptions&, Faults&) {}

void check_scheduler(const PopulationBasedTraining& pbt, const TunerOptions& options, Faults& faults) {
  const std::string name = "scheduler (PopulationBasedTraining) ";
  faults.unless(!pbt.time_attr.empty(), name + "time_attr",
                "say what perturbation_interval counts, such as \"training_iteration\" or \"time_total_s\"");
  faults.unless(!pbt.metric.empty(), name + "metric",
                "name the metric that trials are compared by, here or in TuneConfig");
  const std::string& outer = options.tune_config.metric;
  faults.unless(pbt.metric == outer || outer.empty() || pbt.metric.empty(), name + "metric",
                fmt::format("it is \"{}\", but the TuneConfig's metric is \"{}\"", pbt.metric, outer));
  faults.unless(std::isfinite(pbt.perturbation_interval) && pbt.perturbation_interval > 0,
                name + "perturbation_interval",
                fmt::format("it is {}; it must be above 0, in units of time_attr", pbt.perturbation_interval));
  faults.unless(std::isfinite(pbt.burn_in_period) && pbt.burn_in_period >= 0, name + "burn_in_period",
                fmt::format("it is {}; it must be 0 or more", pbt.burn_in_period));
  faults.unless(pbt.quantile_fraction >= 0 && pbt.quantile_fraction <= 0.5, name + "quantile_fraction",
                fmt::format("it is {}; it must be from 0 to 0.5", pbt.quantile_fraction));
  faults.unless(pbt.resample_probability >= 0 && pbt.resample_probability <= 1, name + "resample_probability",
                fmt::format("it is {}; it must be from 0 to 1", pbt.resample_probability));
  const auto& [first, second] = pbt.perturbation_factors;
  faults.unless(std::isfinite(first) && std::isfinite(second) && first > 0 && second > 0, name + "perturbation_factors",
                fmt::format("they are {} and {}; both must be above 0", first, second));
  faults.unless(std::isfinite(pbt.synch_deadline) && pbt.synch_deadline >= 0, name + "synch_deadline",
                fmt::format("it is {}; it must be 0 (none) or more seconds", pbt.synch_deadline));
  faults.unless(pbt.synch || pbt.synch_deadline == 0, name + "synch_deadline", "it needs synch = true");
  faults.unless(!pbt.hyperparam_mutations.empty(), name + "hyperparam_mutations", "name at least one key to mutate");
  check_mutations(pbt.hyperparam_mutations, options.param_space, name + "hyperparam_mutations ", faults);
}

// ---- Everything else

void check_resources(const Resources& resources, Faults& faults) {
  const auto check = [&](const std::string& name, double amount) {
    faults.unless(std::isfinite(amount) && amount >= 0, "resources " + name,
                  fmt::format("the amount {} must be 0 or more", amount));
  };
  check("cpus", resources.cpus);
  check("gpus", resources.gpus);
  for (const auto& [name, amount] : resources.custom) check("\"" + name + "\"", amount);
  const bool any = resources.cpus > 0 || resources.gpus > 0 ||
                   std::ranges::any_of(resources.custom, [](const auto& entry) { return entry.second > 0; });
  faults.unless(any, "resources", "a trial needs some amount of some resource");
}

void check_failure_config(const FailureConfig& failure, Faults& faults) {
  faults.unless(failure.max_failures >= -1, "failure_config max_failures",
                fmt::format("it is {}; it must be 0 or more, or -1 for retries without limit", failure.max_failures));
  faults.unless(failure.max_restore_failures >= 0, "failure_config max_restore_failures",
                fmt::format("it is {}; it must be 0 or more", failure.max_restore_failures));
  faults.unless(!failure.fail_fast || failure.max_failures == 0, "failure_config fail_fast",
                "the first failure ends the experiment, so max_failures must be 0");
}

bool is_time(Seconds time) { return std::isfinite(time.count()) && time.count() >= 0; }

void check_limits(const TrialLimits& limits, Faults& faults) {
  const auto check = [&](const std::string& name, const std::optional<Seconds>& limit) {
    const bool good = !limit || (is_time(*limit) && limit->count() > 0);
    faults.unless(good, "limits " + name,
                  fmt::format("it is {:g} s; it must be above 0", limit.value_or(Seconds()).count()));
  };
  check("time", limits.time);
  check("time_between_reports", limits.time_between_reports);
  faults.unless(limits.memory_bytes != 0, "limits memory_bytes", "it is 0; a worker needs some memory");
}

void check_run_config(const RunConfig& run, Faults& faults) {
  if (!run.name.empty()) {
    const std::string fault = base::fault_of_file_name(run.name);
    if (!fault.empty()) faults.add("name", "\"" + run.name + "\" cannot name a directory: " + fault);
  }
  for (const auto& [metric, threshold] : run.stop) {
    faults.unless(!metric.empty(), "stop", "a criterion has no metric");
    faults.unless(!std::isnan(threshold), "stop \"" + metric + "\"", "the threshold is NaN and is never reached");
  }
  check_failure_config(run.failure_config, faults);
  check_limits(run.limits, faults);
  faults.unless(is_time(run.stop_grace_period), "stop_grace_period",
                fmt::format("it is {:g} s; it must be 0 or more", run.stop_grace_period.count()));
  faults.unless(run.verbose >= 0 && run.verbose <= 2, "verbose",
                fmt::format("it is {}; it must be 0, 1 or 2", run.verbose));
  const auto& keep = run.checkpoint_config.num_to_keep;
  faults.unless(!keep || *keep >= 1, "checkpoint_config num_to_keep",
                fmt::format("it is {}; keep at least 1 checkpoint, or leave it out to keep all", keep.value_or(0)));
}

// ---- What is stored

// Whatever begins can be continued: it reads back from its store as it is.
void check_description(const Dict& description, Faults& faults) {
  try {
    const Value stored = base::parse_json(base::to_json(description), "the options as JSON");
    for (const Difference& difference : differences(description, stored.dict())) {
      faults.add(difference.path,
                 "it would not be read back from the store as it is: text must be UTF-8, and the key \"$reference\" is "
                 "reserved");
    }
  } catch (const StorageError& error) {
    faults.add("options", std::string("they would not be read back from the store: ") + error.what());
  }
}

}  // namespace

TunerOptions resolve(TunerOptions options) {
  TuneConfig& tune = options.tune_config;
  if (auto* pbt = std::get_if<PopulationBasedTraining>(&tune.scheduler)) {
    if (pbt->metric.empty()) {
      pbt->metric = tune.metric;
      pbt->mode = tune.mode;
    } else if (tune.metric.empty()) {
      tune.metric = pbt->metric;
      tune.mode = pbt->mode;
    }
  }
  return options;
}

void check_options(const Trainable& trainable, const TunerOptions& options) {
  Faults faults;
  faults.unless(run::find_entry(trainable.name) != nullptr, "trainable",
                "\"" + trainable.name + "\" is not registered; make it with tune::trainable<function>()");
  check_resources(trainable.resources, faults);
  check_space(options.param_space, "param_space ", faults);
  const TuneConfig& tune = options.tune_config;
  faults.unless(tune.num_samples >= 1, "num_samples",
                fmt::format("it is {}; at least 1 trial is needed", tune.num_samples));
  faults.unless(tune.num_samples <= std::int64_t{1} << 31, "num_samples", "at most 2^31 trials are possible");
  faults.unless(tune.max_concurrent_trials >= 0, "max_concurrent_trials",
                fmt::format("it is {}; it must be 0 (no limit) or more", tune.max_concurrent_trials));
  std::visit([&](const auto& scheduler) { check_scheduler(scheduler, options, faults); }, tune.scheduler);
  check_run_config(options.run_config, faults);
  check_description(describe(trainable, options), faults);
  faults.throw_if_any("the experiment");
}

}  // namespace cadre::tune
