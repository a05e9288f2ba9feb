#include "tune/searchers/density_ratio.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace cadre::tune {
namespace {

// Candidates for a suggestion.
struct ScoredPoints {
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

// Returns the points that have all parameters of a group.
std::vector<const Point*> with_group(const std::vector<const Point*>& points, const Group& group) {
  std::vector<const Point*> having;
  std::ranges::copy_if(points, std::back_inserter(having),
                       [&](const Point* point) { return !std::isnan((*point)[group.front()]); });
  return having;
}

// Draws the parameters of a group for the candidates in which it exists. The score is that of whole candidates, because
// an option of a choice is as good as the best that is known of the parameters under it.
void extend(const Parameters& parameters, const Group& group, const Division& division,
            const ParzenEstimator::Smoothing& smoothing, base::RandomStream& random, ScoredPoints& candidates) {
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

double bandwidth_with(std::size_t trials) { return std::max(0.01, 0.45 / std::sqrt(2 + static_cast<double>(trials))); }

std::vector<double> weights_by_age(std::size_t count) {
  constexpr std::size_t kLatest = 25;
  std::vector<double> weights(count, 1.0);
  if (count <= kLatest) return weights;
  const std::size_t ramp = count - kLatest;
  const double first = 1 / static_cast<double>(count);
  for (std::size_t i = 0; i < ramp; ++i) {
    const double part = ramp == 1 ? 0 : static_cast<double>(i) / static_cast<double>(ramp - 1);
    weights[i] = first + (1 - first) * part;
  }
  return weights;
}

std::vector<Group> groups_of(const Parameters& parameters, bool multivariate, bool by_condition) {
  std::vector<Group> groups;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> group_of;  // by parameter and option, or kNoCondition
  constexpr std::pair kNoCondition{std::numeric_limits<std::size_t>::max(), std::size_t{0}};
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::optional<Parameter::Condition>& condition = parameters[i].condition;
    const bool is_joint = multivariate && (!condition || by_condition);
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

Point best_by_ratio(const Parameters& parameters, const std::vector<Group>& groups, const Division& division,
                    const RatioSearch& search, base::RandomStream& random) {
  const Point nothing(parameters.size(), std::numeric_limits<double>::quiet_NaN());
  ScoredPoints candidates{.points = std::vector<Point>(search.candidates, nothing),
                          .scores = std::vector<double>(search.candidates)};
  for (const Group& group : groups) {
    extend(parameters, group, division, search.smoothing, random, candidates);
    if (search.group_by_group) candidates.keep_best();
  }
  return candidates.best();
}

}  // namespace cadre::tune
