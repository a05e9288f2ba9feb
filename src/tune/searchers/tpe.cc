#include "cadre/tune/searchers/tpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "base/random.h"
#include "cadre/tune/tuner.h"
#include "tune/searchers/density_ratio.h"
#include "tune/searchers/hypervolume.h"
#include "tune/searchers/observations.h"

namespace cadre::tune {
namespace {

class TpeSearcher final : public Searcher {
 public:
  TpeSearcher(TPE options, const SearcherSetting& setting)
      : options_(std::move(options)),
        seed_(setting.seed),
        observations_(setting, options_.metrics, options_.constraints),
        groups_(groups_of(observations_.parameters(), options_.multivariate, options_.group)) {}

  std::optional<Config> suggest(TrialIndex trial) const override;
  void on_trial_add(TrialIndex trial, const Config& config) override { observations_.on_trial_add(trial, config); }
  void on_trial_end(TrialIndex trial, TrialStatus status, const Metrics& last_result) override {
    observations_.on_trial_end(trial, status, last_result);
  }
  std::string debug_string() const override;

 private:
  std::size_t num_good() const;
  std::vector<bool> find_good() const;
  Division divide() const;

  TPE options_;
  std::uint64_t seed_;
  Observations observations_;
  std::vector<Group> groups_;
};

bool has_infinite_loss(const Observation& one) {
  return std::ranges::any_of(one.losses, [](double loss) { return loss == std::numeric_limits<double>::infinity(); });
}

std::optional<Config> TpeSearcher::suggest(TrialIndex trial) const {
  if (std::ssize(observations_.ended()) < options_.n_startup_trials) return Config();
  const RatioSearch search{
      .candidates = static_cast<std::size_t>(options_.n_ei_candidates),
      .smoothing = {.bandwidth = bandwidth_with(observations_.ended().size()), .prior_weight = options_.prior_weight},
      .group_by_group = !options_.multivariate};
  base::RandomStream random(seed_, trial, base::Purpose::suggestion);
  const Parameters& parameters = observations_.parameters();
  return parameters.config_of(best_by_ratio(parameters, groups_, divide(), search, random));
}

std::string TpeSearcher::debug_string() const {
  if (std::ssize(observations_.ended()) < options_.n_startup_trials) return "TPE: configs are random";
  return fmt::format("TPE: the best {} of {} trials count as good", num_good(), observations_.ended().size());
}

// ---- Good and bad trials

std::size_t TpeSearcher::num_good() const {
  const auto wanted = std::ceil(options_.gamma * static_cast<double>(observations_.ended().size()));
  const auto count = static_cast<std::size_t>(wanted);
  return observations_.num_objectives() > 1 ? count
                                            : std::min(count, static_cast<std::size_t>(options_.max_good_trials));
}

// Orders trials before their losses do.
using Tier = std::tuple<double, bool, bool, std::int64_t>;

Tier tier_of(const Observation& one) {
  return {one.violation, has_infinite_loss(one), one.stopped, one.stopped ? -one.iteration : 0};
}

// Returns for each trial whether it is a good one.
std::vector<bool> TpeSearcher::find_good() const {
  const std::vector<Observation>& ended = observations_.ended();
  std::map<Tier, std::vector<std::size_t>> tiers;
  for (std::size_t i = 0; i < ended.size(); ++i) tiers[tier_of(ended[i])].push_back(i);
  std::vector<bool> is_good(ended.size());
  std::size_t missing = num_good();
  for (const auto& [tier, trials] : tiers) {
    std::vector<Losses> losses;
    for (const std::size_t trial : trials) losses.push_back(ended[trial].losses);
    const std::size_t count = std::min(missing, trials.size());
    for (const std::size_t index : select_best(losses, count))
      is_good[trials[index]] = !has_infinite_loss(ended[trials[index]]);
    missing -= count;
    if (missing == 0) break;
  }
  return is_good;
}

Division TpeSearcher::divide() const {
  const std::vector<Observation>& ended = observations_.ended();
  const std::vector<bool> is_good = find_good();
  Division division;
  auto open = observations_.open().begin();
  const auto add_open_before = [&](TrialIndex trial) {
    for (; options_.constant_liar && open != observations_.open().end() && open->first < trial; ++open)
      division.bad.push_back(&open->second);
  };
  for (std::size_t i = 0; i < ended.size(); ++i) {
    add_open_before(ended[i].trial);
    (is_good[i] ? division.good : division.bad).push_back(&ended[i].point);
  }
  add_open_before(std::numeric_limits<TrialIndex>::max());
  return division;
}

}  // namespace

std::unique_ptr<Searcher> TPE::make(const SearcherSetting& setting) const {
  return std::make_unique<TpeSearcher>(*this, setting);
}

void TPE::check(const TunerOptions&, Faults& faults) const {
  faults.unless(n_startup_trials >= 0, "n_startup_trials",
                fmt::format("it is {}; it must be 0 or more", n_startup_trials));
  faults.unless(n_ei_candidates >= 1 && n_ei_candidates <= 100'000, "n_ei_candidates",
                fmt::format("it is {}; it must be from 1 to 100000", n_ei_candidates));
  faults.unless(gamma > 0 && gamma < 1, "gamma", fmt::format("it is {}; it must be above 0 and below 1", gamma));
  faults.unless(max_good_trials >= 1, "max_good_trials",
                fmt::format("it is {}; it must be 1 or more", max_good_trials));
  faults.unless(std::isfinite(prior_weight) && prior_weight > 0, "prior_weight",
                fmt::format("it is {}; it must be above 0", prior_weight));
  check_objectives(metrics, faults);
  check_constraints(constraints, faults);
}

template class detail::HeldOptionsOf<Searcher, SearcherSetting, TPE>;

}  // namespace cadre::tune
