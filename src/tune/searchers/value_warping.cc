#include "tune/searchers/value_warping.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/normal_distribution.h"

namespace cadre::tune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

// Returns the values with the greatest finite one in the place of infinity and NaN, and the least in that of negative
// infinity; if none is finite, with 1 and -1.
VectorXd finite_values(const std::vector<double>& values) {
  double least = std::numeric_limits<double>::infinity();
  double greatest = -least;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  if (least > greatest) {
    least = -1;
    greatest = 1;
  }
  VectorXd finite(std::ssize(values));
  for (Index i = 0; i < finite.size(); ++i) {
    const double value = values[static_cast<std::size_t>(i)];
    finite[i] = std::isnan(value) ? greatest : std::clamp(value, least, greatest);
  }
  return finite;
}

struct Moments {
  double mean = 0;
  double deviation = 1;
};

Moments moments_of(const VectorXd& values) {
  const double mean = values.mean();
  const double deviation = std::sqrt((values.array() - mean).square().mean());
  return {mean, deviation > 1e-12 * (1 + std::abs(mean)) ? deviation : 1};
}

}  // namespace

VectorXd warped_losses(const std::vector<double>& losses) {
  static const int mode = std::getenv("GP_WARP") ? atoi(std::getenv("GP_WARP")) : 1;
  VectorXd warped = finite_values(losses);
  if (mode >= 1 && warped.size() > 1) {
    std::vector<double> sorted(warped.begin(), warped.end());
    std::ranges::sort(sorted);
    const auto n = static_cast<double>(sorted.size());
    const double median = sorted[(sorted.size() - 1) / 2];
    double squares = 0;
    double better = 0;
    for (const double value : sorted) {
      if (value > median) break;
      squares += (value - median) * (value - median);
      ++better;
    }
    const double deviation = std::sqrt(squares / better);
    for (double& value : warped) {
      if (value <= median) continue;
      const auto [begin, end] = std::ranges::equal_range(sorted, value);
      const double rank = 0.5 * static_cast<double>((begin - sorted.begin()) + (end - sorted.begin())) ;
      value = median + deviation * base::normal_quantile(std::max(0.5, rank / n));
    }
    if (mode == 2 || mode == 3) {
      const double offset = mode == 2 ? 1.5 : 10;
      const double least = warped.minCoeff();
      const double range = warped.maxCoeff() - least;
      if (range > 0)
        for (double& value : warped) value = std::log1p((value - least) / range * (offset - 1)) / std::log(offset);
    }
  }
  const auto [mean, deviation] = moments_of(warped);
  return (warped.array() - mean) / deviation;
}

WarpedLimit warped_excesses(const std::vector<double>& excesses) {
  const VectorXd finite = finite_values(excesses);
  std::vector<double> sizes(finite.size());
  std::ranges::transform(finite, sizes.begin(), [](double excess) { return std::abs(excess); });
  std::ranges::sort(sizes);
  const double middle = sizes[sizes.size() / 2];
  const double unit = middle > 0 ? middle : 1;
  const VectorXd warped = (finite.array() / unit).unaryExpr([](double excess) { return std::asinh(excess); });
  const auto [mean, deviation] = moments_of(warped);
  return {.values = (warped.array() - mean) / deviation, .limit = -mean / deviation};
}

}  // namespace cadre::tune
