#include "cadre/tune/schedulers/population_based_training.h"

#include <fmt/format.h>

#include <cmath>

#include "cadre/tune/tuner.h"
#include "tune/functions.h"
#include "tune/schedulers/explore.h"
#include "tune/schedulers/pbt_scheduler.h"

namespace cadre::tune {

std::unique_ptr<Scheduler> PopulationBasedTraining::make(const SchedulerSetting& setting) const {
  return make_pbt_scheduler(pbt_settings(*this, "PopulationBasedTraining"), setting.seed,
                            std::make_unique<QuantileSelection>(quantile_fraction), mutation_explorer(*this));
}

void PopulationBasedTraining::check(const TunerOptions& options, Faults& faults) const {
  check_pbt_settings(pbt_settings(*this, "PopulationBasedTraining"), faults);
  faults.unless(resample_probability >= 0 && resample_probability <= 1, "resample_probability",
                fmt::format("it is {}; it must be from 0 to 1", resample_probability));
  const auto& [first, second] = perturbation_factors;
  faults.unless(std::isfinite(first) && std::isfinite(second) && first > 0 && second > 0, "perturbation_factors",
                fmt::format("they are {} and {}; both must be above 0", first, second));
  const std::string& custom = custom_explore_fn.function;
  faults.unless(!hyperparam_mutations.empty() || !custom.empty(), "hyperparam_mutations",
                "name at least one key to mutate, or set custom_explore_fn");
  check_mutations(hyperparam_mutations, options.param_space, faults);
  if (!custom.empty()) check_registered(explore_functions(), custom_explore_fn, "custom_explore_fn", faults);
}

void PopulationBasedTraining::complete(const TunerOptions&, std::vector<std::string>& notes) {
  hyperparam_mutations = with_sorted_bounds(hyperparam_mutations, "hyperparam_mutations ", notes);
}

Scheduler::Traits PopulationBasedTraining::traits() const {
  return {.exploits = true, .logs_exploits = log_config, .mutated = mutated_keys(hyperparam_mutations)};
}

template class detail::HeldOptionsOf<Scheduler, SchedulerSetting, PopulationBasedTraining>;

}  // namespace cadre::tune
