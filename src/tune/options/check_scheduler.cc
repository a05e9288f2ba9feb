#include "tune/options/check_scheduler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "control/objective.h"
#include "tune/domain.h"
#include "tune/functions.h"
#include "tune/options/check_search_space.h"
#include "tune/searchers/variant_generator.h"

namespace cadre::tune {
namespace {

using Nested = std::shared_ptr<const Space>;

bool draws_integers(const SpaceEntry& entry) {
  const auto* domain = std::get_if<Domain>(&entry.data());
  const auto* constant = std::get_if<Value>(&entry.data());
  return (domain != nullptr &&
          (std::holds_alternative<RandInt>(*domain) || std::holds_alternative<LogRandInt>(*domain))) ||
         (constant != nullptr && constant->is_integer());
}

bool holds_an_integer(const Domain& domain) {
  const auto between = [](double lower, double upper) { return std::ceil(lower) <= std::floor(upper); };
  if (const auto* real = std::get_if<Uniform>(&domain)) return between(real->lower, real->upper);
  if (const auto* real = std::get_if<LogUniform>(&domain)) return between(real->lower, real->upper);
  return true;
}

// Collects the spaces that may contain the keys of a nested mutation: the nested space or, in a conditional space,
// several.
void spaces_below(const SpaceEntry& entry, std::vector<const Space*>& found) {
  const auto look_into = [&](const Entries& options) {
    for (const SpaceEntry& option : options) spaces_below(option, found);
  };
  if (const auto* nested = std::get_if<Nested>(&entry.data())) found.push_back(nested->get());
  if (const auto* grid = std::get_if<GridSearch>(&entry.data())) look_into(*grid->options);
  if (const auto* domain = std::get_if<Domain>(&entry.data())) {
    if (const auto* choice = std::get_if<Choice>(domain)) look_into(*choice->options);
  }
}

void check_mutations(const Mutations& mutations, const std::vector<const Space*>& spaces, const std::string& path,
                     control::Faults& faults);

void check_mutation(const Mutation& mutation, const SpaceEntry& entry, const std::string& name,
                    control::Faults& faults) {
  std::vector<const Space*> below;
  spaces_below(entry, below);
  if (const auto* nested = std::get_if<std::shared_ptr<const Mutations>>(&mutation.data())) {
    if (below.empty()) return faults.add(name, "nested mutations need a nested search space under this key");
    return check_mutations(**nested, below, name + " > ", faults);
  }
  if (!below.empty()) return faults.add(name, "the search space has a nested space under this key: mutate its keys");
  if (const auto* function = std::get_if<SampleFrom>(&mutation.data())) return check_function(*function, name, faults);
  if (const auto* domain = std::get_if<Domain>(&mutation.data())) {
    check_domain(*domain, name, faults);
    List options;
    faults.unless(constant_options(*domain, options), name, "the options of a mutation must be plain values");
    if (fault_of(*domain).empty() && draws_integers(entry) && !holds_an_integer(*domain))
      faults.add(name, to_string(*domain) + " holds no integer, but param_space has integers under this key");
  } else {
    faults.unless(!std::get<List>(mutation.data()).empty(), name, "the list has no values");
  }
}

void check_mutations(const Mutations& mutations, const std::vector<const Space*>& spaces, const std::string& path,
                     control::Faults& faults) {
  for (auto mutation = mutations.begin(); mutation != mutations.end(); ++mutation) {
    const std::string& key = mutation->first;
    const std::string name = path + "\"" + key + "\"";
    if (std::any_of(mutations.begin(), mutation, [&](const auto& earlier) { return earlier.first == key; }))
      faults.add(name, "the key is there twice");
    bool found = false;
    for (const Space* space : spaces) {
      const SpaceEntry* entry = find(*space, key);
      if (entry == nullptr || found) continue;
      found = true;
      check_mutation(mutation->second, *entry, name, faults);
    }
    faults.unless(found, name, "param_space has no such key; it has: " + keys_of(*spaces.front()));
  }
}

void check_scheduler(const FIFO&, const TunerOptions&, control::Faults&) {}

void check_scheduler(const PopulationBasedTraining& pbt, const TunerOptions& options, control::Faults& faults) {
  const std::string name = "scheduler (PopulationBasedTraining) ";
  faults.unless(!pbt.time_attr.empty(), name + "time_attr",
                "say what perturbation_interval counts, such as \"training_iteration\" or \"time_total_s\"");
  faults.unless(!pbt.metric.name.empty(), name + "metric",
                "say what trials are compared by, in TuneConfig: .metric = tune::maximize(\"accuracy\"), or minimize");
  const TuneConfig& tune = options.tune_config;
  const bool is_same = pbt.metric.name == tune.metric.name;
  faults.unless(is_same || tune.metric.name.empty() || pbt.metric.name.empty(), name + "metric",
                fmt::format("it is \"{}\", but the TuneConfig's metric is \"{}\"", pbt.metric.name, tune.metric.name));
  const std::string fault = control::fault_of(pbt.metric, pbt.mode, "its mode", {tune.metric.name, tune.mode});
  // If the TuneConfig lacks a direction, that is reported only once.
  faults.unless(fault.empty() || pbt.metric.name.empty() || (is_same && !tune.mode), name + "metric", fault);
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
  const std::string& custom = pbt.custom_explore_fn.function;
  faults.unless(!pbt.hyperparam_mutations.empty() || !custom.empty(), name + "hyperparam_mutations",
                "name at least one key to mutate, or set custom_explore_fn");
  check_mutations(pbt.hyperparam_mutations, {&options.param_space}, name + "hyperparam_mutations ", faults);
  if (!custom.empty())
    check_registered(explore_functions(), custom, "explore_function", name + "custom_explore_fn", faults);
}

void check_scheduler(const PopulationBasedTrainingReplay& replay, const TunerOptions& options,
                     control::Faults& faults) {
  if (!replay.schedule)
    return faults.add(std::string(kReplay) + "policy_file",
                      "name the file to replay, pbt_policy_<trial id>.txt of an experiment");
  const TuneConfig& tune = options.tune_config;
  faults.unless(tune.num_samples == 1, "num_samples",
                fmt::format("it is {}; a replay trains 1 trial", tune.num_samples));
  faults.unless(count_combinations(options.param_space, {}, 2) < 2, "param_space",
                "it has grids, and a replay trains 1 trial");
  faults.unless(tune.points_to_evaluate.empty(), "points_to_evaluate",
                "a replay begins with the first config of its schedule");
  faults.unless(!replay.schedule->initial_config.empty() || !options.param_space.empty(),
                std::string(kReplay) + "policy_file",
                "it is empty, and so is param_space: there is no config to train with");
}

}  // namespace

void check_scheduler(const TunerOptions& options, control::Faults& faults) {
  std::visit([&](const auto& scheduler) { check_scheduler(scheduler, options, faults); },
             options.tune_config.scheduler);
}

}  // namespace cadre::tune
