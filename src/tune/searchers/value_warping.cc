#include "tune/searchers/value_warping.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/normal_distribution.h"

namespace cadre::tune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

// Returns the values with the greatest finite one in the place of infinity and NaN, and the least in that of negative
// infinity; if none is finite, with 1 and -1. Sums of squares of their differences are finite, too.
VectorXd finite_values(const std::vector<double>& values) {
  constexpr double kFarthest = 1e150;
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
  least = std::clamp(least, -kFarthest, kFarthest);
  greatest = std::clamp(greatest, -kFarthest, kFarthest);
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

// Returns losses in which those above the median are replaced: by the quantile of their rank in a normal distribution
// around the median, with the deviation that the others have.
VectorXd with_bad_losses_by_rank(VectorXd losses) {
  std::vector<double> sorted(losses.begin(), losses.end());
  std::ranges::sort(sorted);
  const double median = sorted[(sorted.size() - 1) / 2];
  const Eigen::ArrayXd better = (losses.array() <= median).select(losses.array() - median, 0);
  const auto num_better = static_cast<double>((losses.array() <= median).count());
  const double deviation = std::sqrt(better.square().sum() / num_better);
  for (double& loss : losses) {
    if (loss <= median) continue;
    const auto [begin, end] = std::ranges::equal_range(sorted, loss);
    const auto rank = static_cast<double>((begin - sorted.begin()) + (end - sorted.begin())) / 2;
    loss = median + deviation * base::normal_quantile(std::max(0.5, rank / static_cast<double>(sorted.size())));
  }
  return losses;
}

// Returns a number from 0 to 1 on a scale, from 0 to 1 too, whose slope at 0 is `stretch` times that at 1.
double stretched(double share, double stretch) {
  return stretch > 1 ? std::log1p(share * (stretch - 1)) / std::log(stretch) : share;
}

}  // namespace

VectorXd warped_losses(const std::vector<double>& losses, double stretch) {
  VectorXd warped = with_bad_losses_by_rank(finite_values(losses));
  const double least = warped.minCoeff();
  const double range = warped.maxCoeff() - least;
  if (range > 0)
    warped = (warped.array() - least).unaryExpr([&](double above) { return stretched(above / range, stretch); });
  const auto [mean, deviation] = moments_of(warped);
  return (warped.array() - mean) / deviation;
}

WarpedLimit warped_excesses(const std::vector<double>& excesses) {
  if (excesses.empty()) return {};
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
