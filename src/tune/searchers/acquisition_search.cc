#include "tune/searchers/acquisition_search.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>

#include "tune/searchers/bounded_minimizer.h"

namespace cadre::tune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

// Returns true if all values of the parameter are tried. Ordered ones with more of them are first treated as a
// continuum.
bool has_few_values(const Parameter& parameter) {
  constexpr std::int64_t kFewInOrder = 32;
  constexpr std::int64_t kFewOptions = 1000;
  return parameter.num_values > 0 && parameter.num_values <= (parameter.is_ordered() ? kFewInOrder : kFewOptions);
}

// The least and the greatest coordinate that it suggests for a parameter: those of normal distributions have no bounds.
std::pair<double, double> coordinate_bounds(const Parameter& parameter) {
  constexpr double kTail = 1e-4;
  if (std::holds_alternative<Normal>(parameter.domain)) return {kTail, 1 - kTail};
  return {0, std::nextafter(1.0, 0.0)};
}

// A point that has all coordinates, also where a condition does not hold: they count as soon as it does.
class FullPoint {
 public:
  FullPoint(const Parameters& parameters, Point coordinates)
      : coordinates_(std::move(coordinates)), settled_(parameters.settled(coordinates_)) {}

  const Point& coordinates() const { return coordinates_; }
  const Point& settled() const { return settled_; }
  FullPoint with(const Parameters& parameters, std::size_t index, double coordinate) const {
    Point changed = coordinates_;
    changed[index] = coordinate;
    return {parameters, std::move(changed)};
  }

 private:
  Point coordinates_;
  Point settled_;
};

class Search {
 public:
  Search(const Parameters& parameters, const AcquisitionFunction& function, const AcquisitionSearch& search,
         base::RandomStream& stream)
      : parameters_(parameters), function_(function), search_(search), stream_(stream) {
    constexpr double kRounding = 1e-12;  // of the ends of cells
    for (const Parameter& parameter : parameters.all()) {
      std::vector<double>& middles = middles_.emplace_back();
      if (!has_few_values(parameter)) continue;
      for (double begin = 0; std::ssize(middles) < parameter.num_values && begin < 1;) {
        const Parameter::Cell cell = parameter.cell(begin);
        middles.push_back(cell.middle());
        begin = cell.end + kRounding;
      }
    }
  }

  Point best() {
    const std::vector<FullPoint> candidates = draw_candidates();
    std::vector<Point> settled;
    for (const FullPoint& candidate : candidates) settled.push_back(candidate.settled());
    const VectorXd values = function_.values(settled);
    std::optional<Located> best;
    for (const std::size_t start : choose_starts(values)) {
      Located found = local_search({candidates[start], values[static_cast<Index>(start)]});
      if (!best || found.value > best->value) best = std::move(found);
    }
    if (has_discrete_) change_several(*best);
    return best->point.settled();
  }

 private:
  static constexpr int kMostRounds = 10;
  static constexpr double kLeastGain = 1e-4;  // of a round, for another one

  struct Located {
    FullPoint point;
    double value = 0;
  };

  double draw(std::size_t index) {
    const auto [lower, upper] = coordinate_bounds(parameters_[index]);
    return std::clamp(stream_.uniform(), lower, upper);
  }
  FullPoint draw_anywhere() {
    Point point(parameters_.size());
    for (std::size_t i = 0; i < point.size(); ++i) point[i] = draw(i);
    return {parameters_, std::move(point)};
  }
  // Draws coordinates that the point lacks.
  FullPoint completed(Point point) {
    for (std::size_t i = 0; i < point.size(); ++i) {
      if (std::isnan(point[i])) point[i] = draw(i);
    }
    return {parameters_, std::move(point)};
  }
  FullPoint draw_near(const Point& incumbent);

  // Returns random points: the first ones are near incumbents, or such themselves.
  std::vector<FullPoint> draw_candidates() {
    constexpr double kShareNear = 0.7;
    std::vector<FullPoint> candidates;
    for (const Point& incumbent : search_.incumbents) candidates.push_back(completed(incumbent));
    const auto num_near = static_cast<std::int64_t>(kShareNear * static_cast<double>(search_.num_candidates));
    for (std::int64_t i = 0; i < num_near && !search_.incumbents.empty(); ++i)
      candidates.push_back(draw_near(search_.incumbents[stream_.below(search_.incumbents.size())]));
    while (std::ssize(candidates) < search_.num_candidates || candidates.empty()) candidates.push_back(draw_anywhere());
    return candidates;
  }

  // Returns the indices of the best candidate, the first incumbent, and others drawn in proportion to the exponential
  // of their values.
  std::vector<std::size_t> choose_starts(const VectorXd& values) {
    Index best = 0;
    values.maxCoeff(&best);
    std::vector<std::size_t> starts{static_cast<std::size_t>(best)};
    if (!search_.incumbents.empty() && best != 0) starts.push_back(0);
    VectorXd shares = (values.array() - values[best]).exp();
    for (const std::size_t start : starts) shares[static_cast<Index>(start)] = 0;
    while (std::ssize(starts) < search_.num_local_searches && shares.sum() > 0) {
      double rest = stream_.uniform() * shares.sum();
      Index drawn = 0;
      while (drawn + 1 < shares.size() && rest >= shares[drawn]) rest -= shares[drawn++];
      starts.push_back(static_cast<std::size_t>(drawn));
      shares[drawn] = 0;
    }
    return starts;
  }

  Located local_search(Located located) {
    if (has_discrete_) follow_gradient(located, Smooth::ordered);
    for (int round = 0; round < kMostRounds; ++round) {
      const double before = located.value;
      follow_gradient(located, Smooth::continuum);
      for (std::size_t i = 0; i < parameters_.size(); ++i) try_values(i, located);
      if (!(located.value > before + kLeastGain) || !has_discrete_) break;
    }
    return located;
  }

  // Moves to the best of random points nearby, and from there by local search.
  void change_several(Located& located) {
    constexpr int kTried = 300;
    for (int round = 0; round < kMostRounds; ++round) {
      const double before = located.value;
      std::vector<FullPoint> others;
      for (int i = 0; i < kTried; ++i) others.push_back(draw_near(located.point.settled()));
      move_if_better(others, located);
      if (!(located.value > before + kLeastGain)) break;
      located = local_search(std::move(located));
    }
  }

  // The parameters that are treated as continua: those with few values are if all ordered ones are.
  enum class Smooth { continuum, ordered };
  bool is_smooth(std::size_t index, const FullPoint& point, Smooth continua) const {
    return parameters_[index].is_ordered() && (middles_[index].empty() || continua == Smooth::ordered) &&
           !std::isnan(point.settled()[index]);
  }
  void follow_gradient(Located& located, Smooth continua) const;
  void try_values(std::size_t index, Located& located) const;
  void move_if_better(const std::vector<FullPoint>& others, Located& located) const;
  std::vector<double> other_values(std::size_t index, double coordinate) const;

  const Parameters& parameters_;
  const AcquisitionFunction& function_;
  const AcquisitionSearch& search_;
  base::RandomStream& stream_;
  std::vector<std::vector<double>> middles_ = {};  // of the cells, by parameter; none if it counts as a continuum
  bool has_discrete_ = std::ranges::any_of(parameters_.all(), &Parameter::is_discrete);
};

// Changes about a few coordinates, by steps of all sizes.
FullPoint Search::draw_near(const Point& incumbent) {
  constexpr double kChanged = 10;  // about so many coordinates
  const double share = std::min(1.0, kChanged / static_cast<double>(parameters_.size()));
  const double size = std::pow(10, -3 * stream_.uniform());
  Point point = completed(incumbent).coordinates();
  for (std::size_t i = 0; i < point.size(); ++i) {
    if (stream_.uniform() >= share) continue;
    const auto [lower, upper] = coordinate_bounds(parameters_[i]);
    if (parameters_[i].is_ordered()) {
      point[i] = std::clamp(point[i] + 0.5 * size * stream_.normal(), lower, upper);
    } else if (stream_.uniform() < 0.3) {
      point[i] = draw(i);
    }
  }
  return {parameters_, std::move(point)};
}

void Search::follow_gradient(Located& located, Smooth continua) const {
  std::vector<std::size_t> smooth;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (is_smooth(i, located.point, continua)) smooth.push_back(i);
  }
  if (smooth.empty()) return;
  // Coordinates in units of the length scales have similar curvatures.
  const auto n = static_cast<Index>(smooth.size());
  const VectorXd scales = function_.length_scales()(smooth);
  VectorXd start(n);
  VectorXd lower(n);
  VectorXd upper(n);
  for (Index i = 0; i < n; ++i) {
    const std::size_t index = smooth[static_cast<std::size_t>(i)];
    std::tie(lower[i], upper[i]) = coordinate_bounds(parameters_[index]);
    start[i] = std::clamp(located.point.coordinates()[index], lower[i], upper[i]) / scales[i];
    lower[i] /= scales[i];
    upper[i] /= scales[i];
  }
  const auto moved = [&](const VectorXd& scaled, Point point) {
    for (Index i = 0; i < n; ++i) {
      const std::size_t index = smooth[static_cast<std::size_t>(i)];
      const auto [least, greatest] = coordinate_bounds(parameters_[index]);
      point[index] = std::clamp(scaled[i] * scales[i], least, greatest);
    }
    return point;
  };
  const auto negated = [&](const VectorXd& scaled, VectorXd& gradient) {
    VectorXd in_coordinates;
    const double value = function_.value(moved(scaled, located.point.settled()), in_coordinates);
    gradient = -in_coordinates(smooth).cwiseProduct(scales);
    return -value;
  };
  const Minimum minimum =
      minimize(negated, start, lower, upper, {.max_evaluations = 50, .value_tolerance = 1e-5, .point_tolerance = 1e-5});
  if (minimum.point.size() == 0) return;
  FullPoint found(parameters_, moved(minimum.point, located.point.coordinates()));
  move_if_better({found}, located);
}

// Returns the coordinates of other values of a discrete parameter: all, or neighbours in growing distances.
std::vector<double> Search::other_values(std::size_t index, double coordinate) const {
  const Parameter& parameter = parameters_[index];
  std::vector<double> others = middles_[index];
  if (!others.empty() || !parameter.is_discrete()) return others;
  const auto [lower, upper] = coordinate_bounds(parameter);
  const Parameter::Cell cell = parameter.cell(coordinate);
  for (double step = std::max(cell.end - cell.begin, 1e-15); step < 1; step *= 4) {
    for (const double other : {coordinate - step, coordinate + step}) {
      if (other > lower && other < upper) others.push_back(other);
    }
  }
  return others;
}

void Search::try_values(std::size_t index, Located& located) const {
  if (std::isnan(located.point.settled()[index]) || !parameters_[index].is_discrete()) return;
  std::vector<FullPoint> others;
  for (const double coordinate : other_values(index, located.point.settled()[index]))
    others.push_back(located.point.with(parameters_, index, coordinate));
  move_if_better(others, located);
}

void Search::move_if_better(const std::vector<FullPoint>& others, Located& located) const {
  if (others.empty()) return;
  std::vector<Point> settled;
  for (const FullPoint& other : others) settled.push_back(other.settled());
  Index best = 0;
  const double value = function_.values(settled).maxCoeff(&best);
  if (value > located.value) located = {others[static_cast<std::size_t>(best)], value};
}

}  // namespace

Point maximize_acquisition(const Parameters& parameters, const AcquisitionFunction& function,
                           const AcquisitionSearch& search, base::RandomStream& stream) {
  return Search(parameters, function, search, stream).best();
}

}  // namespace cadre::tune
