// The stored fields of an experiment's options: one list for each struct, used for writing and reading
// (description.cc). A new option needs its name and its line here; a struct with more fields than its list does not
// compile. A field that is added() may be missing in an older store, and then has its default.
#pragma once

#include <variant>

#include "base/archive.h"
#include "run/resource_fields.h"
#include "tune/description.h"

namespace cadre::tune {

using base::Is;

// ---- Search space

void fields(auto& archive, Is<Uniform> auto& domain) {
  auto& [lower, upper, q] = domain;
  archive("lower", lower);
  archive("upper", upper);
  archive("q", q);
}

void fields(auto& archive, Is<LogUniform> auto& domain) {
  auto& [lower, upper, q] = domain;
  archive("lower", lower);
  archive("upper", upper);
  archive("q", q);
}

void fields(auto& archive, Is<Normal> auto& domain) {
  auto& [mean, sd, q] = domain;
  archive("mean", mean);
  archive("sd", sd);
  archive("q", q);
}

void fields(auto& archive, Is<RandInt> auto& domain) {
  auto& [lower, upper, q] = domain;
  archive("lower", lower);
  archive("upper", upper);
  archive("q", q);
}

void fields(auto& archive, Is<LogRandInt> auto& domain) {
  auto& [lower, upper, q] = domain;
  archive("lower", lower);
  archive("upper", upper);
  archive("q", q);
}

void fields(auto& archive, Is<Choice> auto& domain) { archive("options", domain.options); }
void fields(auto& archive, Is<GridSearch> auto& grid) { archive("options", grid.options); }

void fields(auto& archive, Is<Ordinal> auto& domain) {
  auto& [options] = domain;
  archive("options", options);
}

void fields(auto& archive, Is<SampleFrom> auto& function) {
  auto& [name] = function;
  archive("function", name);
}

// Other entries of a search space or of mutations, each with its own type so that none is read as another.
struct Constant {
  Value value;
};
struct ListSpace {
  std::shared_ptr<const Entries> items;
};
struct NestedSpace {
  Space entries;
};
struct Values {
  List values;
};
struct NestedMutations {
  Mutations entries;
};
using StoredEntry = std::variant<Uniform, LogUniform, Normal, RandInt, LogRandInt, Choice, Ordinal, GridSearch,
                                 SampleFrom, Constant, ListSpace, NestedSpace>;
using StoredMutation = std::variant<Uniform, LogUniform, Normal, RandInt, LogRandInt, Choice, Ordinal, SampleFrom,
                                    Values, NestedMutations>;

void fields(auto& archive, Is<Constant> auto& constant) { archive("value", constant.value); }
void fields(auto& archive, Is<ListSpace> auto& list) { archive("items", list.items); }
void fields(auto& archive, Is<NestedSpace> auto& space) { archive("entries", space.entries); }
void fields(auto& archive, Is<Values> auto& values) { archive("values", values.values); }
void fields(auto& archive, Is<NestedMutations> auto& mutations) { archive("entries", mutations.entries); }

// ---- Schedulers

void fields(auto&, Is<FIFO> auto&) {}

void fields(auto& archive, Is<PopulationBasedTraining> auto& pbt) {
  auto& [time_attr, metric, mode, perturbation_interval, burn_in_period, hyperparam_mutations, custom_explore_fn,
         bounds, quantile_fraction, resample_probability, perturbation_factors, log_config, require_attrs, synch,
         synch_deadline] = pbt;
  archive("time_attr", time_attr);
  archive("metric", metric);
  archive("mode", mode);
  archive("perturbation_interval", perturbation_interval);
  archive("burn_in_period", burn_in_period);
  archive("hyperparam_mutations", hyperparam_mutations);
  archive("custom_explore_fn", custom_explore_fn.function);
  archive("bounds", bounds);
  archive("quantile_fraction", quantile_fraction);
  archive("resample_probability", resample_probability);
  archive("perturbation_factors", perturbation_factors);
  archive("log_config", log_config);
  archive("require_attrs", require_attrs);
  archive("synch", synch);
  archive("synch_deadline", synch_deadline);
}

void fields(auto& archive, Is<PolicySchedule::Change> auto& change) {
  auto& [change_at, config] = change;
  archive("change_at", change_at);
  archive("config", config);
}

void fields(auto& archive, Is<PolicySchedule> auto& schedule) {
  auto& [initial_config, changes] = schedule;
  archive("initial_config", initial_config);
  archive("changes", changes);
}

void fields(auto& archive, Is<PopulationBasedTrainingReplay> auto& replay) {
  auto& [policy_file, schedule] = replay;
  archive("policy_file", policy_file);
  archive("schedule", schedule);
}

// ---- Stoppers

void fields(auto& archive, Is<MaximumIterationStopper> auto& stopper) {
  auto& [max_iter] = stopper;
  archive("max_iter", max_iter);
}

void fields(auto& archive, Is<TrialPlateauStopper> auto& stopper) {
  auto& [metric, std, num_results, grace_period, metric_threshold, mode] = stopper;
  archive("metric", metric);
  archive("std", std);
  archive("num_results", num_results);
  archive("grace_period", grace_period);
  archive("metric_threshold", metric_threshold);
  archive("mode", mode);
}

void fields(auto& archive, Is<ExperimentPlateauStopper> auto& stopper) {
  auto& [metric, std, top, mode, patience] = stopper;
  archive("metric", metric);
  archive("std", std);
  archive("top", top);
  archive("mode", mode);
  archive("patience", patience);
}

void fields(auto& archive, Is<TimeoutStopper> auto& stopper) {
  auto& [timeout] = stopper;
  archive("timeout", timeout);
}

void fields(auto& archive, Is<FunctionStopper> auto& stopper) {
  auto& [function] = stopper;
  archive("function", function);
}

// ---- Names of a variant's alternatives

template <class T>
inline constexpr const char* type_name = nullptr;
template <>
inline constexpr const char* type_name<Uniform> = "uniform";
template <>
inline constexpr const char* type_name<LogUniform> = "loguniform";
template <>
inline constexpr const char* type_name<RandInt> = "randint";
template <>
inline constexpr const char* type_name<Choice> = "choice";
template <>
inline constexpr const char* type_name<Normal> = "randn";
template <>
inline constexpr const char* type_name<LogRandInt> = "lograndint";
template <>
inline constexpr const char* type_name<Ordinal> = "ordinal";
template <>
inline constexpr const char* type_name<GridSearch> = "grid_search";
template <>
inline constexpr const char* type_name<SampleFrom> = "sample_from";
template <>
inline constexpr const char* type_name<ListSpace> = "list";
template <>
inline constexpr const char* type_name<Constant> = "constant";
template <>
inline constexpr const char* type_name<NestedSpace> = "space";
template <>
inline constexpr const char* type_name<Values> = "values";
template <>
inline constexpr const char* type_name<NestedMutations> = "mutations";
template <>
inline constexpr const char* type_name<FIFO> = "FIFO";
template <>
inline constexpr const char* type_name<PopulationBasedTraining> = "PopulationBasedTraining";
template <>
inline constexpr const char* type_name<PopulationBasedTrainingReplay> = "PopulationBasedTrainingReplay";

template <>
inline constexpr const char* type_name<MaximumIterationStopper> = "MaximumIterationStopper";
template <>
inline constexpr const char* type_name<TrialPlateauStopper> = "TrialPlateauStopper";
template <>
inline constexpr const char* type_name<ExperimentPlateauStopper> = "ExperimentPlateauStopper";
template <>
inline constexpr const char* type_name<TimeoutStopper> = "TimeoutStopper";
template <>
inline constexpr const char* type_name<FunctionStopper> = "FunctionStopper";

// ---- The experiment

// Omits `methods`, which come from the program.
void fields(auto& archive, Is<Trainable> auto& trainable) {
  auto& [name, resources, parameters, methods, more_bundles, strategy, resource_function] = trainable;
  archive("name", name);
  archive("resources", resources);
  archive.added("parameters", parameters);
  archive.added("more_bundles", more_bundles);
  archive.added("strategy", strategy);
  archive.added("resource_function", resource_function.function);
}

void fields(auto& archive, Is<Parking> auto& parking) {
  auto& [max_workers, min_free_memory, with_gpus] = parking;
  archive("max_workers", max_workers);
  archive("min_free_memory", min_free_memory);
  archive("with_gpus", with_gpus);
}

void fields(auto& archive, Is<TuneConfig> auto& tune) {
  auto& [metric, mode, num_samples, scheduler, max_concurrent_trials, seed, points_to_evaluate, parking,
         constant_grid_search, time_budget] = tune;
  archive("metric", metric);
  archive("mode", mode);
  archive("num_samples", num_samples);
  archive("scheduler", scheduler);
  archive("max_concurrent_trials", max_concurrent_trials);
  archive("seed", seed);
  archive("points_to_evaluate", points_to_evaluate);
  archive("parking", parking);
  archive("constant_grid_search", constant_grid_search);
  archive.added("time_budget", time_budget);
}

void fields(auto& archive, Is<CheckpointConfig> auto& checkpoints) {
  auto& [num_to_keep, checkpoint_score_attribute, checkpoint_score_order, checkpoint_frequency, checkpoint_at_end] =
      checkpoints;
  archive("num_to_keep", num_to_keep);
  archive("checkpoint_score_attribute", checkpoint_score_attribute);
  archive("checkpoint_score_order", checkpoint_score_order);
  archive.added("checkpoint_frequency", checkpoint_frequency);
  archive.added("checkpoint_at_end", checkpoint_at_end);
}

void fields(auto& archive, Is<FailureConfig> auto& failures) {
  auto& [max_failures, max_restore_failures, fail_fast] = failures;
  archive("max_failures", max_failures);
  archive("max_restore_failures", max_restore_failures);
  archive("fail_fast", fail_fast);
}

void fields(auto& archive, Is<TrialLimits> auto& limits) {
  auto& [time, time_between_reports, memory_bytes] = limits;
  archive("time", time);
  archive("time_between_reports", time_between_reports);
  archive("memory_bytes", memory_bytes);
}

void fields(auto& archive, Is<Loggers> auto& loggers) {
  auto& [csv, json, tensorboard] = loggers;
  archive("csv", csv);
  archive("json", json);
  archive("tensorboard", tensorboard);
}

// Omits name, if_exists, storage_path and publish_config, which depend on the directory and change when it is moved,
// and the callbacks, which come from the program.
void fields(auto& archive, Is<RunConfig> auto& run) {
  auto& [name, if_exists, storage_path, publish_config, stop, checkpoint_config, failure_config, limits,
         stop_grace_period, verbose, log_to_driver, chdir_to_trial_dir, loggers, callbacks] = run;
  archive("stop", stop.thresholds);
  archive.added("stoppers", stop.stoppers);
  archive("checkpoint_config", checkpoint_config);
  archive("failure_config", failure_config);
  archive("limits", limits);
  archive("stop_grace_period", stop_grace_period);
  archive("verbose", verbose);
  archive.added("log_to_driver", log_to_driver);
  archive.added("chdir_to_trial_dir", chdir_to_trial_dir);
  archive.added("loggers", loggers);
}

void fields(auto& archive, Is<TunerOptions> auto& options) {
  auto& [param_space, tune_config, run_config] = options;
  archive("param_space", param_space);
  archive("tune_config", tune_config);
  archive("run_config", run_config);
}

void fields(auto& archive, Is<Description> auto& description) {
  auto& [trainable, options] = description;
  archive("trainable", trainable);
  fields(archive, options);
}

}  // namespace cadre::tune
