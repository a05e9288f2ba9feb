// Parzen estimators: probability densities over the unit cube, made from points that were drawn from them.
#pragma once

#include <Eigen/Dense>
#include <cstddef>
#include <span>
#include <vector>

#include "base/random.h"
#include "cadre/tune/parameters.h"

namespace cadre::tune {

// The widths of kernels.
struct ParzenWidths {
  double prior_weight = 1;        // weight of the prior, where a point has 1
  double smallest_bandwidth = 0;  // of Gaussians
};

// A mixture of one kernel for each point and a prior over the whole cube. A kernel is a product over parameters: a
// Gaussian around the point's coordinate, truncated to the cube, for a number; for a choice, the point's option with
// high probability and the others with equal ones. The probability of a discrete number is that of its cell.
// Source: Bergstra et al. 2011, "Algorithms for Hyper-Parameter Optimization"; the multivariate form is BOHB's, Falkner
// et al. 2018; bandwidths and choices are as Optuna 5 has them.
class ParzenEstimator {
 public:
  // Estimates the density of `dimensions`, which are indices of parameters, from settled points that have them all.
  // There is a weight for each point.
  ParzenEstimator(const Parameters& parameters, std::vector<std::size_t> dimensions,
                  std::span<const Point* const> points, std::span<const double> weights, const ParzenWidths& widths);

  // Draws the coordinates of the dimensions, and leaves the others of `point` as they are.
  void sample(base::RandomStream& random, Point& point) const;
  // Returns the logarithms of the densities at settled points. The measure of a continuum is length, that of a discrete
  // parameter counts its values.
  std::vector<double> log_densities(std::span<const Point> points) const;

 private:
  struct Dimension {
    const Parameter* parameter = nullptr;
    std::size_t index = 0;
    double log_hit = 0;              // of a choice: the kernel's probability of its own option
    double log_miss = 0;             // and of each other one
    double smallest_bandwidth = 0;   // of a number
    std::vector<double> means = {};  // of a discrete number: kernels without repetition
    std::vector<double> scales = {};
    std::vector<std::size_t> kernels = {};  // and which of them each component has
  };

  void fit_choice(Dimension& dimension, Eigen::Index column, double prior_weight);
  void fit_number(Dimension& dimension, Eigen::Index column, const ParzenWidths& widths);
  void add_log_kernels(const Dimension& dimension, Eigen::Index column, double coordinate,
                       Eigen::ArrayXd& log_kernels) const;
  static void add_log_masses(const Dimension& dimension, const Parameter::Cell& cell, Eigen::ArrayXd& log_kernels);

  std::vector<Dimension> dimensions_;
  std::vector<double> cumulative_weights_;
  // A row for each component, the prior last; a column for each dimension.
  Eigen::ArrayXXd means_;
  Eigen::ArrayXXd scales_;           // 1 / (bandwidth * sqrt(2))
  Eigen::ArrayXd log_coefficients_;  // logarithm of the weight and of what makes a kernel's integral 1
};

// Returns the bandwidth of each of some coordinates: the distance to the farther one of its neighbours, but at least
// `smallest`, at most 1. A single one has the distance to the farther end of the cube.
std::vector<double> parzen_bandwidths(std::span<const double> coordinates, double smallest);

// Returns the probability of the interval between two numbers under a Gaussian with bandwidth 1 / (scale * sqrt(2)).
double gaussian_mass(double begin, double end, double mean, double scale);

}  // namespace cadre::tune
