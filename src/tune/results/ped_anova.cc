#include "tune/results/ped_anova.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <variant>

#include "base/normal_distribution.h"

namespace cadre::tune {
namespace {

constexpr std::size_t kMostCells = 50;
constexpr double kPriorWeight = 1;         // in observations
constexpr double kNarrowest = 0.5 / 1.64;  // 90 % of a kernel are in its own cell
constexpr double kLeastProbability = 1e-12;

std::size_t sum(const CellCounts& counts) { return std::accumulate(counts.begin(), counts.end(), std::size_t{0}); }

bool is_logarithmic(const Domain& domain) {
  return std::holds_alternative<LogUniform>(domain) || std::holds_alternative<LogRandInt>(domain);
}

// Returns the first cell up to which more than `rank` observations lie, or as many if `or_equal`; the last observed one
// if there is none.
std::size_t cell_at_rank(const CellCounts& counts, std::size_t rank, bool or_equal) {
  std::size_t before = 0;
  std::size_t last = 0;
  for (std::size_t cell = 0; cell < counts.size(); ++cell) {
    if (counts[cell] == 0) continue;
    before += counts[cell];
    last = cell;
    if (before > rank || (or_equal && before == rank)) break;
  }
  return last;
}

// Returns the width of kernels for the observations: Scott's rule, for a standard deviation that few outliers change.
double kernel_width(const CellCounts& counts) {
  const std::size_t total = sum(counts);
  const auto size = static_cast<double>(total);
  double mean = 0;
  for (std::size_t cell = 0; cell < counts.size(); ++cell)
    mean += static_cast<double>(counts[cell]) * static_cast<double>(cell) / size;
  double squares = 0;
  for (std::size_t cell = 0; cell < counts.size(); ++cell)
    squares += static_cast<double>(counts[cell]) * std::pow(static_cast<double>(cell) - mean, 2);
  const double deviation = std::sqrt(squares / std::max(1.0, size - 1));
  const auto quartiles_apart = static_cast<double>(cell_at_rank(counts, total * 3 / 4, false)) -
                               static_cast<double>(cell_at_rank(counts, total / 4, true));
  return std::max(1.059 * std::min(quartiles_apart / 1.34, deviation) * std::pow(size, -0.2), kNarrowest);
}

// Adds a normal distribution, rounded to cells and cut off at the ends.
void add_kernel(std::vector<double>& probabilities, double centre, double width, double weight) {
  const auto below = [&](double edge) { return base::normal_probability((edge - centre) / width); };
  const double inside = below(static_cast<double>(probabilities.size()) - 0.5) - below(-0.5);
  for (std::size_t cell = 0; cell < probabilities.size(); ++cell) {
    const auto middle = static_cast<double>(cell);
    probabilities[cell] += weight * (below(middle + 0.5) - below(middle - 0.5)) / inside;
  }
}

std::vector<double> ordered_probabilities(const CellCounts& counts) {
  const auto cells = static_cast<double>(counts.size());
  const double weight = 1 / (static_cast<double>(sum(counts)) + kPriorWeight);
  const double width = kernel_width(counts);
  std::vector<double> probabilities(counts.size());
  for (std::size_t cell = 0; cell < counts.size(); ++cell) {
    if (counts[cell] > 0)
      add_kernel(probabilities, static_cast<double>(cell), width, weight * static_cast<double>(counts[cell]));
  }
  add_kernel(probabilities, (cells - 1) / 2, cells, weight * kPriorWeight);
  return probabilities;
}

std::vector<double> unordered_probabilities(const CellCounts& counts) {
  const auto cells = static_cast<double>(counts.size());
  const auto kernels = static_cast<double>(counts.size()) - static_cast<double>(std::ranges::count(counts, 0u)) + 1;
  const double elsewhere = kPriorWeight / kernels;  // of each cell, beside 1 for the kernel's own
  const auto total = static_cast<double>(sum(counts));
  const double weight = 1 / (total + kPriorWeight);
  std::vector<double> probabilities;
  for (const std::size_t count : counts) {
    const double kernel_sum = 1 + cells * elsewhere;
    const double observed = (static_cast<double>(count) + total * elsewhere) / kernel_sum;
    probabilities.push_back(weight * (observed + kPriorWeight / cells));
  }
  return probabilities;
}

double weighted_divergence(const Parameter& parameter, std::size_t index, const std::vector<Point>& points,
                           const std::vector<bool>& is_good) {
  CellCounts all(count_cells(parameter));
  CellCounts good(all.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (std::isnan(points[i][index])) continue;
    const std::size_t cell = cell_of(parameter, points[i][index]);
    ++all[cell];
    if (is_good[i]) ++good[cell];
  }
  const bool varies = all.size() - static_cast<std::size_t>(std::ranges::count(all, 0u)) > 1;
  if (!varies || sum(good) == 0) return 0;
  // Shares of good trials and of all that have the parameter: a divergence within few trials matters less.
  const double good_share = static_cast<double>(sum(good)) / static_cast<double>(std::ranges::count(is_good, true));
  const double share = static_cast<double>(sum(all)) / static_cast<double>(points.size());
  return good_share * good_share / share * pearson_divergence(good, all, parameter.is_ordered());
}

}  // namespace

std::size_t count_cells(const Parameter& parameter) {
  if (parameter.num_values == 0) return kMostCells;
  const auto values = static_cast<std::size_t>(parameter.num_values);
  if (!parameter.is_ordered()) return values;
  // Small integers are far apart on a logarithmic scale: more cells would stay empty.
  if (is_logarithmic(parameter.domain) && values > 1)
    return std::min(kMostCells, static_cast<std::size_t>(std::ceil(std::log2(static_cast<double>(values)))) + 1);
  return std::min(kMostCells, values);
}

std::size_t cell_of(const Parameter& parameter, double coordinate) {
  const std::size_t cells = count_cells(parameter);
  if (cells == 1) return 0;
  if (!parameter.is_ordered())
    return std::min(cells - 1, static_cast<std::size_t>(coordinate * static_cast<double>(cells)));
  const double lowest = parameter.cell(0).middle();
  const double highest = parameter.cell(std::nextafter(1, 0)).middle();
  const auto last = static_cast<double>(cells - 1);
  const double position = (coordinate - lowest) / (highest - lowest) * last;
  constexpr double slack = 1e-9;  // the lower cell has what is half-way, also after rounding
  return static_cast<std::size_t>(std::clamp(std::ceil(position - 0.5 - slack), 0.0, last));
}

std::vector<double> cell_probabilities(const CellCounts& counts, bool is_ordered) {
  if (sum(counts) == 0) return std::vector<double>(counts.size(), 1 / static_cast<double>(counts.size()));
  return is_ordered ? ordered_probabilities(counts) : unordered_probabilities(counts);
}

double pearson_divergence(const CellCounts& good, const CellCounts& all, bool is_ordered) {
  const std::vector<double> p = cell_probabilities(good, is_ordered);
  const std::vector<double> q = cell_probabilities(all, is_ordered);
  double divergence = 0;
  for (std::size_t cell = 0; cell < p.size(); ++cell) {
    const double base = q[cell] + kLeastProbability;
    divergence += base * std::pow((p[cell] + kLeastProbability) / base - 1, 2);
  }
  return divergence;
}

std::vector<bool> best_quantile(const std::vector<double>& losses, double quantile) {
  if (losses.empty()) return {};
  std::vector<double> sorted = losses;
  std::ranges::sort(sorted);
  const double rank = std::ceil(quantile * static_cast<double>(losses.size()));
  const double cutoff = sorted[static_cast<std::size_t>(std::clamp(rank, 1.0, static_cast<double>(sorted.size()))) - 1];
  std::vector<bool> best;
  for (const double loss : losses) best.push_back(loss <= cutoff);
  return best;
}

std::vector<double> ped_anova(const Parameters& parameters, const std::vector<Point>& points,
                              const std::vector<bool>& is_good) {
  std::vector<double> importances;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    importances.push_back(weighted_divergence(parameters[i], i, points, is_good));
  return importances;
}

}  // namespace cadre::tune
