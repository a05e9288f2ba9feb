#include "cadre/tune/searchers/bohb.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cadre/stored.h"
#include "cadre/tune/tuner.h"
#include "control/objective.h"
#include "tune/searchers/density_ratio.h"

namespace cadre::tune {
namespace {

// Returns the budgets, the smallest first.
std::vector<double> budgets_of(const BOHB& options) {
  constexpr double kRounding = 1 + 1e-9;
  std::vector<double> budgets;
  for (double budget = options.max_t; budget * kRounding >= 1; budget /= options.reduction_factor)
    budgets.push_back(budgets.empty() ? budget : std::floor(budget * kRounding));
  std::ranges::reverse(budgets);
  return budgets;
}

class BohbSearcher final : public Searcher {
 public:
  BohbSearcher(BOHB options, const SearcherSetting& setting)
      : options_(std::move(options)),
        seed_(setting.seed),
        metric_(setting.metric),
        parameters_(setting.space),
        groups_(groups_of(parameters_, true, true)),
        budgets_(budgets_of(options_)),
        losses_(budgets_.size()) {}

  std::optional<Config> suggest(TrialIndex trial) const override;
  void on_trial_add(TrialIndex trial, const Config& config) override {
    if (std::optional<Point> point = parameters_.point_of(config)) points_[trial] = *std::move(point);
  }
  void on_result(TrialIndex trial, const Metrics& result) override;
  void on_trial_end(TrialIndex trial, TrialStatus, const Metrics& last_result) override {
    on_result(trial, last_result);  // of an earlier experiment only this one is known
  }
  Value save() const override { return to_stored(losses_); }
  void load(const Value& state) override;
  std::string debug_string() const override;

 private:
  using Losses = std::map<TrialIndex, double>;

  std::int64_t enough() const {
    return options_.min_observations.value_or(static_cast<std::int64_t>(parameters_.size()) + 3);
  }
  std::optional<std::size_t> budget_to_learn_from() const;
  Division divide(const Losses& losses) const;

  BOHB options_;
  std::uint64_t seed_;
  Objective metric_;
  Parameters parameters_;
  std::vector<Group> groups_;
  std::vector<double> budgets_;
  std::map<TrialIndex, Point> points_ = {};
  std::vector<Losses> losses_;  // at each budget; small values are good
};

void BohbSearcher::on_result(TrialIndex trial, const Metrics& result) {
  const std::optional<double> time = control::finite_number(result, options_.time_attr);
  const std::optional<double> value = result.number(metric_.name);
  if (!time || !value || *time < budgets_.front() || !points_.contains(trial)) return;
  const auto beyond = std::ranges::upper_bound(budgets_, *time) - budgets_.begin();
  const double loss = metric_.mode == Mode::max ? -*value : *value;
  losses_[static_cast<std::size_t>(beyond) - 1].try_emplace(
      trial, std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss);
}

// Returns the largest budget with enough observations.
std::optional<std::size_t> BohbSearcher::budget_to_learn_from() const {
  for (std::size_t budget = budgets_.size(); budget-- > 0;) {
    if (std::ssize(losses_[budget]) >= enough()) return budget;
  }
  return std::nullopt;
}

std::optional<Config> BohbSearcher::suggest(TrialIndex trial) const {
  base::RandomStream random(seed_, trial, base::Purpose::suggestion);
  const bool is_random = random.uniform() < options_.random_fraction;
  const std::optional<std::size_t> budget = budget_to_learn_from();
  if (is_random || !budget) return Config();
  const Losses& losses = losses_[*budget];
  const RatioSearch search{.candidates = static_cast<std::size_t>(options_.num_candidates),
                           .smoothing = {.bandwidth = bandwidth_with(losses.size())}};
  return parameters_.config_of(best_by_ratio(parameters_, groups_, divide(losses), search, random));
}

Division BohbSearcher::divide(const Losses& losses) const {
  std::vector<std::pair<double, TrialIndex>> ranking;
  for (const auto& [trial, loss] : losses) ranking.emplace_back(loss, trial);
  std::ranges::sort(ranking);
  const double wanted = std::ceil(options_.good_fraction * static_cast<double>(ranking.size()));
  const std::pair last = ranking[static_cast<std::size_t>(wanted) - 1];
  Division division;
  for (const auto& [trial, loss] : losses) {
    const bool is_good = std::isfinite(loss) && std::pair(loss, trial) <= last;
    (is_good ? division.good : division.bad).push_back(&points_.at(trial));
  }
  return division;
}

void BohbSearcher::load(const Value& state) {
  auto losses = from_value<std::vector<Losses>>(state);
  const auto is_known = [&](const Losses& at_budget) {
    return std::ranges::all_of(at_budget, [&](const auto& one) { return points_.contains(one.first); });
  };
  if (losses.size() != budgets_.size() || !std::ranges::all_of(losses, is_known))
    throw InvalidArgument("the state is one of other budgets or trials");
  losses_ = std::move(losses);
}

std::string BohbSearcher::debug_string() const {
  const std::optional<std::size_t> budget = budget_to_learn_from();
  if (!budget) return "BOHB: configs are random";
  return fmt::format("BOHB: learns from {} trials at {} {:g}", losses_[*budget].size(), options_.time_attr,
                     budgets_[*budget]);
}

}  // namespace

std::unique_ptr<Searcher> BOHB::make(const SearcherSetting& setting) const {
  return std::make_unique<BohbSearcher>(*this, setting);
}

void BOHB::check(const TunerOptions&, Faults& faults) const {
  faults.unless(!time_attr.empty(), "time_attr", "say what max_t counts, such as \"training_iteration\"");
  faults.unless(max_t >= 1 && max_t <= 1e9, "max_t", fmt::format("it is {}; it must be from 1 to 10^9", max_t));
  faults.unless(std::isfinite(reduction_factor) && reduction_factor >= 1.1, "reduction_factor",
                fmt::format("it is {}; it must be 1.1 or more", reduction_factor));
  faults.unless(!min_observations || *min_observations >= 2, "min_observations",
                fmt::format("it is {}; it must be at least 2", min_observations.value_or(0)));
  faults.unless(good_fraction > 0 && good_fraction < 1, "good_fraction",
                fmt::format("it is {}; it must be above 0 and below 1", good_fraction));
  faults.unless(num_candidates >= 1 && num_candidates <= 100'000, "num_candidates",
                fmt::format("it is {}; it must be from 1 to 100000", num_candidates));
  faults.unless(random_fraction >= 0 && random_fraction <= 1, "random_fraction",
                fmt::format("it is {}; it must be from 0 to 1", random_fraction));
}

template class detail::HeldOptionsOf<Searcher, SearcherSetting, BOHB>;

}  // namespace cadre::tune
