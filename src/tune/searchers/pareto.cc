#include "tune/searchers/pareto.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace cadre::tune {
namespace {

// Returns the indices of the points in lexicographic order: none is dominated by one that comes after it.
std::vector<std::size_t> lexicographic_order(const std::vector<Losses>& points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) -> const Losses& { return points[i]; });
  return order;
}

// The fronts of points that come in lexicographic order.
class Fronts {
 public:
  // Adds a point to the first front in which none dominates it, and returns the front's number.
  std::size_t add(const Losses& point) {
    // A front of which none dominates the point is followed by such fronts only.
    const auto front = std::ranges::partition_point(fronts_, [&](const Front& one) { return has_better(one, point); });
    const auto number = static_cast<std::size_t>(front - fronts_.begin());
    if (front == fronts_.end()) fronts_.emplace_back();
    if (point.size() <= 2) fronts_[number].clear();  // the last one dominates if any does
    fronts_[number].push_back(&point);
    return number;
  }

 private:
  using Front = std::vector<const Losses*>;

  static bool has_better(const Front& front, const Losses& point) {
    return std::any_of(front.rbegin(), front.rend(), [&](const Losses* one) { return dominates(*one, point); });
  }

  std::vector<Front> fronts_;
};

}  // namespace

bool dominates(const Losses& a, const Losses& b) {
  bool is_better = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    is_better = is_better || a[i] < b[i];
  }
  return is_better;
}

std::vector<std::size_t> non_domination_ranks(const std::vector<Losses>& points) {
  std::vector<std::size_t> ranks(points.size());
  Fronts fronts;
  for (const std::size_t i : lexicographic_order(points)) ranks[i] = fronts.add(points[i]);
  return ranks;
}

std::vector<std::size_t> pareto_front(const std::vector<Losses>& points) {
  std::vector<std::size_t> front;
  for (const std::size_t i : lexicographic_order(points)) {
    const auto is_better = [&](std::size_t one) { return dominates(points[one], points[i]); };
    const bool is_dominated = points[i].size() <= 2 ? !front.empty() && is_better(front.back())
                                                    : std::any_of(front.rbegin(), front.rend(), is_better);
    if (!is_dominated) front.push_back(i);
  }
  std::ranges::sort(front);
  return front;
}

std::vector<double> crowding_distances(const std::vector<Losses>& points) {
  std::vector<double> distances(points.size(), 0);
  std::vector<std::size_t> order(points.size());
  for (std::size_t objective = 0; !points.empty() && objective < points.front().size(); ++objective) {
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto loss = [&](std::size_t i) { return points[i][objective]; };
    std::ranges::stable_sort(order, {}, loss);
    if (loss(order.front()) == loss(order.back())) continue;
    const auto is_finite = [&](std::size_t i) { return std::isfinite(loss(i)); };
    const auto first = std::ranges::find_if(order, is_finite);
    const auto last = std::find_if(order.rbegin(), order.rend(), is_finite);
    const auto half_distance = [&](std::size_t from, std::size_t to) { return loss(to) / 2 - loss(from) / 2; };
    const double range = first == order.end() ? 0 : half_distance(*first, *last);  // halves do not overflow
    for (std::size_t i = 1; i + 1 < order.size(); ++i) {
      if (loss(order[i + 1]) == loss(order[i - 1])) continue;
      distances[order[i]] += half_distance(order[i - 1], order[i + 1]) / (range > 0 ? range : 1);
    }
    distances[order.front()] = std::numeric_limits<double>::infinity();
    distances[order.back()] = std::numeric_limits<double>::infinity();
  }
  return distances;
}

}  // namespace cadre::tune
