#include "cadre/tune/schedulers/multiple_frequencies_pbt.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "cadre/tune/tuner.h"
#include "tune/options/check_search_space.h"
#include "tune/schedulers/explore.h"
#include "tune/schedulers/pbt_scheduler.h"
#include "tune/searchers/variant_generator.h"

namespace cadre::tune {
namespace {

constexpr std::int64_t kFewestTrials = 4;  // in a sub-population: one in each bracket

// The trials of a sub-population by their scores, from the best to the worst.
struct Brackets {
  Brackets(std::vector<Ranked> best_first, double fraction) : all(std::move(best_first)) {
    const std::size_t half = all.size() / 2;
    const auto size = static_cast<std::size_t>(static_cast<double>(all.size()) * fraction);
    if (fraction > 0) num_winners = std::min(std::max<std::size_t>(size, 1), half);
  }

  std::span<const Ranked> winners() const { return std::span(all).first(num_winners); }
  std::span<const Ranked> losers() const { return std::span(all).last(num_winners); }
  std::span<const Ranked> open_to_migration() const {
    const std::size_t others = all.size() - 2 * num_winners;
    const std::size_t size = std::min(num_winners, others);
    return std::span(all).subspan(all.size() - num_winners - size, size);
  }

  std::vector<Ranked> all;
  std::size_t num_winners = 0;  // and of losers
};

// Source: the authors' program, https://github.com/WaelDLZ/MF-PBT. There, all sub-populations are of the same size.
class MultipleFrequenciesSelection final : public Selection {
 public:
  MultipleFrequenciesSelection(std::vector<std::int64_t> factors, double fraction)
      : factors_(std::move(factors)), fraction_(fraction) {}

  std::vector<Replacement> replacements(const Comparison& comparison) const override {
    const std::vector<Brackets> populations = brackets_of(comparison.ranked);
    std::vector<Replacement> replacements;
    for (std::size_t population = 0; population < populations.size(); ++population) {
      add_exploits(populations[population], replacements);
      add_migrations(populations, population, replacements);
    }
    std::erase_if(replacements, [&](const Replacement& one) {
      const bool compared =
          std::ranges::find(comparison.may_be_replaced, one.target) != comparison.may_be_replaced.end();
      return !compared || (comparison.comparisons_of(one.target) + 1) % factors_[population_of(one.target)] != 0;
    });
    return replacements;
  }
  bool may_become_donor(TrialIndex trial, const std::vector<Ranked>& ranked) const override {
    const std::vector<Brackets> populations = brackets_of(ranked);
    const auto losers = populations[population_of(trial)].losers();
    return std::ranges::find(losers, trial, &Ranked::second) == losers.end();
  }

 private:
  std::size_t population_of(TrialIndex trial) const { return trial % factors_.size(); }

  std::vector<Brackets> brackets_of(const std::vector<Ranked>& worst_first) const {
    std::vector<std::vector<Ranked>> ranked(factors_.size());
    for (auto one = worst_first.rbegin(); one != worst_first.rend(); ++one)
      ranked[population_of(one->second)].push_back(*one);
    std::vector<Brackets> brackets;
    for (std::vector<Ranked>& population : ranked) brackets.emplace_back(std::move(population), fraction_);
    return brackets;
  }

  static void add_exploits(const Brackets& population, std::vector<Replacement>& replacements) {
    const auto winners = population.winners();
    const auto losers = population.losers();
    for (std::size_t i = 0; i < losers.size(); ++i)
      replacements.push_back({.target = losers[i].second, .donor = winners[i].second});
  }

  void add_migrations(const std::vector<Brackets>& populations, std::size_t into,
                      std::vector<Replacement>& replacements) const {
    std::vector<Ranked> migrants;
    for (std::size_t from = 0; from < populations.size(); ++from) {
      const auto winners = populations[from].winners();
      if (from != into) migrants.insert(migrants.end(), winners.begin(), winners.end());
    }
    std::ranges::sort(migrants, std::ranges::greater());
    auto migrant = migrants.begin();
    for (const auto& [score, target] : populations[into].open_to_migration()) {
      if (migrant == migrants.end()) return;
      if (!(migrant->first > score)) continue;
      const bool brings_config = factors_[population_of(migrant->second)] > factors_[into];
      replacements.push_back({.target = target,
                              .donor = migrant->second,
                              .config_of = brings_config ? migrant->second : populations[into].all.front().second});
      ++migrant;
    }
  }

  std::vector<std::int64_t> factors_;
  double fraction_;
};

// Returns the options for the parts that both have.
PopulationBasedTraining as_population_based_training(const MultipleFrequenciesPBT& options) {
  return {.time_attr = options.time_attr,
          .metric = options.metric,
          .mode = options.mode,
          .perturbation_interval = options.perturbation_interval,
          .burn_in_period = options.burn_in_period,
          .hyperparam_mutations = options.hyperparam_mutations,
          .custom_explore_fn = options.custom_explore_fn,
          .bounds = options.bounds,
          .quantile_fraction = options.quantile_fraction,
          .resample_probability = options.resample_probability,
          .perturbation_factors = options.perturbation_factors,
          .log_config = options.log_config,
          .require_attrs = options.require_attrs,
          .synch = options.synch,
          .synch_deadline = options.synch_deadline};
}

void check_number_of_trials(std::size_t populations, const TunerOptions& options, Faults& faults) {
  Faults of_space;
  check_space(options.param_space, of_space);
  if (!of_space.empty() || options.tune_config.num_samples < 1) return;  // reported by others
  const std::int64_t trials = VariantGenerator(options.param_space, options.tune_config).size();
  const std::int64_t least = kFewestTrials * static_cast<std::int64_t>(populations);
  faults.unless(
      trials >= least, "interval_factors",
      fmt::format("they make {} sub-populations, which need {} trials each, {} in all, and there are {}: raise "
                  "num_samples, or name fewer factors",
                  populations, kFewestTrials, least, trials));
}

}  // namespace

std::unique_ptr<Scheduler> MultipleFrequenciesPBT::make(const SchedulerSetting& setting) const {
  return make_pbt_scheduler(pbt_settings(*this, "MultipleFrequenciesPBT"), setting.seed,
                            std::make_unique<MultipleFrequenciesSelection>(interval_factors, quantile_fraction),
                            mutation_explorer(as_population_based_training(*this)));
}

void MultipleFrequenciesPBT::check(const TunerOptions& options, Faults& faults) const {
  as_population_based_training(*this).check(options, faults);
  faults.unless(quantile_fraction > 0.5 || quantile_fraction <= 1.0 / 3, "quantile_fraction",
                fmt::format("it is {}; it must be from 0 to a third, for winners, losers and those open to migration",
                            quantile_fraction));
  const bool grow =
      !interval_factors.empty() && interval_factors.front() == 1 &&
      std::ranges::adjacent_find(interval_factors, std::ranges::greater_equal()) == interval_factors.end();
  faults.unless(grow && interval_factors.size() >= 2, "interval_factors",
                "they must be at least 2 and grow from 1 on, such as {1, 2, 4}");
  if (grow) check_number_of_trials(interval_factors.size(), options, faults);
}

void MultipleFrequenciesPBT::complete(const TunerOptions&, std::vector<std::string>& notes) {
  hyperparam_mutations = with_sorted_bounds(hyperparam_mutations, "hyperparam_mutations ", notes);
}

Scheduler::Traits MultipleFrequenciesPBT::traits() const { return as_population_based_training(*this).traits(); }

template class detail::HeldOptionsOf<Scheduler, SchedulerSetting, MultipleFrequenciesPBT>;

}  // namespace cadre::tune
