#include "cadre/tune/searchers/tpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "base/random.h"
#include "cadre/tune/tuner.h"
#include "tune/searchers/hypervolume.h"
#include "tune/searchers/observations.h"
#include "tune/searchers/parzen_estimator.h"

namespace cadre::tune {
namespace {

// Parameters that have one joint density, and exist together.
using Group = std::vector<std::size_t>;

// Returns the groups, that of a choice before those that exist under one of its options.
std::vector<Group> groups_of(const TPE& options, const Parameters& parameters) {
  std::vector<Group> groups;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> group_of;  // by parameter and option; {} without condition
  constexpr std::pair kNoCondition{std::numeric_limits<std::size_t>::max(), std::size_t{0}};
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::optional<Parameter::Condition>& condition = parameters[i].condition;
    const bool is_joint = options.multivariate && (!condition || options.group);
    const auto key = condition ? std::pair(condition->parameter, condition->option) : kNoCondition;
    if (const auto found = group_of.find(key); is_joint && found != group_of.end()) {
      groups[found->second].push_back(i);
      continue;
    }
    if (is_joint) group_of.emplace(key, groups.size());
    groups.push_back({i});
  }
  return groups;
}

// The points of good and of bad trials, both in order of trials.
struct Division {
  std::vector<const Point*> good = {};
  std::vector<const Point*> bad = {};
};

// Points of which one is to be suggested.
struct Candidates {
  std::vector<Point> points = {};
  std::vector<double> scores = {};  // logarithm of the ratio of the densities of good and of bad trials

  const Point& best() const {
    return points[static_cast<std::size_t>(std::ranges::max_element(scores) - scores.begin())];
  }
  void keep_best() {
    points.assign(points.size(), Point(best()));
    scores.assign(scores.size(), 0);
  }
};

class TpeSearcher final : public Searcher {
 public:
  TpeSearcher(TPE options, const SearcherSetting& setting)
      : options_(std::move(options)),
        seed_(setting.seed),
        observations_(setting, options_.metrics, options_.constraints),
        groups_(groups_of(options_, observations_.parameters())) {}

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
  void extend(const Group& group, const Division& division, base::RandomStream& random, Candidates& candidates) const;

  TPE options_;
  std::uint64_t seed_;
  Observations observations_;
  std::vector<Group> groups_;
};

// Returns the bandwidth of all Gaussians. It is the same for good and bad trials, so that the ratio of their densities
// depends on where they lie, not on how many they are; with bandwidths by the distances of neighbours, as Hyperopt and
// Optuna have them, good trials of few are smoothed too much.
double bandwidth_with(std::size_t trials) { return std::max(0.01, 0.45 / std::sqrt(2 + static_cast<double>(trials))); }

// Returns weights that grow with the trial, except that of the latest ones, which is 1.
// Source: Bergstra, Yamins and Cox 2013, "Making a Science of Model Search".
std::vector<double> weights_by_age(std::size_t count) {
  constexpr std::size_t kLatest = 25;
  std::vector<double> weights(count, 1.0);
  if (count <= kLatest + 1) return weights;
  const auto last = static_cast<double>(count - kLatest - 1);
  const double first = 1 / static_cast<double>(count);
  for (std::size_t i = 0; i < count - kLatest; ++i) weights[i] = first + (1 - first) * static_cast<double>(i) / last;
  return weights;
}

bool has_infinite_loss(const Observation& one) {
  return std::ranges::any_of(one.losses, [](double loss) { return loss == std::numeric_limits<double>::infinity(); });
}

std::optional<Config> TpeSearcher::suggest(TrialIndex trial) const {
  if (std::ssize(observations_.ended()) < options_.n_startup_trials) return Config();
  const Parameters& parameters = observations_.parameters();
  const Division division = divide();
  base::RandomStream random(seed_, trial, base::Purpose::suggestion);
  const Point nothing(parameters.size(), std::numeric_limits<double>::quiet_NaN());
  Candidates candidates{.points = std::vector<Point>(static_cast<std::size_t>(options_.n_ei_candidates), nothing),
                        .scores = std::vector<double>(static_cast<std::size_t>(options_.n_ei_candidates))};
  for (const Group& group : groups_) {
    extend(group, division, random, candidates);
    if (!options_.multivariate) candidates.keep_best();
  }
  return parameters.config_of(candidates.best());
}

std::string TpeSearcher::debug_string() const {
  if (std::ssize(observations_.ended()) < options_.n_startup_trials) return "TPE: configs are random";
  return fmt::format("TPE: {} of {} trials are good", divide().good.size(), observations_.ended().size());
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

// ---- Densities

// Returns the points that have all parameters of a group.
std::vector<const Point*> with_group(const std::vector<const Point*>& points, const Group& group) {
  std::vector<const Point*> having;
  std::ranges::copy_if(points, std::back_inserter(having),
                       [&](const Point* point) { return !std::isnan((*point)[group.front()]); });
  return having;
}

// Draws the parameters of a group for the candidates in which it exists. The score is that of whole candidates, because
// an option of a choice is as good as the best that is known of the parameters under it.
void TpeSearcher::extend(const Group& group, const Division& division, base::RandomStream& random,
                         Candidates& candidates) const {
  const Parameters& parameters = observations_.parameters();
  const ParzenEstimator::Smoothing smoothing{.bandwidth = bandwidth_with(observations_.ended().size()),
                                             .prior_weight = options_.prior_weight};
  const std::vector<const Point*> good_points = with_group(division.good, group);
  const std::vector<const Point*> bad_points = with_group(division.bad, group);
  const ParzenEstimator good(parameters, group, good_points, std::vector<double>(good_points.size(), 1.0), smoothing);
  const ParzenEstimator bad(parameters, group, bad_points, weights_by_age(bad_points.size()), smoothing);
  std::vector<std::size_t> indices;
  std::vector<const Point*> points;
  for (std::size_t i = 0; i < candidates.points.size(); ++i) {
    if (!parameters.exists(group.front(), candidates.points[i])) continue;
    good.sample(random, candidates.points[i]);
    indices.push_back(i);
    points.push_back(&candidates.points[i]);
  }
  const std::vector<double> log_good = good.log_densities(points);
  const std::vector<double> log_bad = bad.log_densities(points);
  for (std::size_t i = 0; i < indices.size(); ++i) candidates.scores[indices[i]] += log_good[i] - log_bad[i];
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
  for (const Objective& metric : metrics) {
    faults.unless(!metric.name.empty(), "metrics", "one of them has no name");
    faults.unless(metric.mode.has_value(), "metrics",
                  fmt::format("\"{0}\" has no direction: write tune::minimize(\"{0}\") or maximize", metric.name));
    faults.unless(std::ranges::count(metrics, metric.name, &Objective::name) == 1, "metrics",
                  fmt::format("\"{}\" is there twice", metric.name));
  }
  for (const Constraint& constraint : constraints) {
    faults.unless(!constraint.metric.empty(), "constraints", "one of them has no metric");
    faults.unless(std::isfinite(constraint.at_most), "constraints",
                  fmt::format("at_most of \"{}\" is {}; it must be finite", constraint.metric, constraint.at_most));
  }
}

template class detail::HeldOptionsOf<Searcher, SearcherSetting, TPE>;

}  // namespace cadre::tune
