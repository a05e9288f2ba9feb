// Parzen estimators: probability densities over the unit cube, made from points that were drawn from them.
#pragma once

#include <Eigen/Dense>
#include <cstddef>
#include <span>
#include <vector>

#include "base/random.h"
#include "cadre/tune/parameters.h"

namespace cadre::tune {

// A mixture of one kernel for each point and a prior over the whole cube. A kernel is a product over dimensions: for a
// number, a Gaussian around the point's coordinate, truncated to the cube; for a choice, a high probability of the
// point's option and equal ones of the others. A discrete number has the probability of its cell. The prior is a wide
// Gaussian in the middle, and all options alike.
//
// Source: Bergstra et al. 2011, "Algorithms for Hyper-Parameter Optimization"; with a product for each point, Falkner
// et al. 2018, "BOHB". The prior and the kernel of a choice are those of Optuna 5.
class ParzenEstimator {
 public:
  struct Smoothing {
    double bandwidth = 0.1;   // standard deviation of the Gaussians; those of cells are at least as wide as these
    double prior_weight = 1;  // where `weights` are those of the points
  };

  // Estimates the density of `dimensions`, which are indices of `parameters`, from settled points that have them all.
  // The parameters must outlive the estimator.
  ParzenEstimator(const Parameters& parameters, std::span<const std::size_t> dimensions,
                  std::span<const Point* const> points, std::span<const double> weights, const Smoothing& smoothing);

  // Draws the coordinates of the dimensions, settled, and leaves the others of `point` as they are.
  void sample(base::RandomStream& random, Point& point) const;
  // Returns the logarithms of the densities at settled points; of a discrete dimension it is a probability.
  std::vector<double> log_densities(std::span<const Point* const> points) const;

 private:
  // The kernel of points with one value of a discrete number.
  struct Kernel {
    double mean = 0;
    double bandwidth = 0;
    double log_mass = 0;  // within the cube
  };
  struct Dimension {
    const Parameter* parameter = nullptr;
    std::size_t index = 0;
    Eigen::ArrayXd coordinates = {};          // of the points; for a continuum in units of bandwidth * sqrt(2)
    std::vector<Kernel> kernels = {};         // of a discrete number
    std::vector<std::size_t> kernel_of = {};  // of each point
    double log_own = 0;                       // of a choice: the probability of a point's option
    double log_other = 0;                     // and of each other one
  };

  void fit_choice(Dimension& dimension) const;
  void fit_continuum(Dimension& dimension);
  void fit_discrete(Dimension& dimension) const;
  double draw(const Dimension& dimension, std::size_t component, base::RandomStream& random) const;
  double log_prior(const Dimension& dimension, double coordinate) const;
  void add_log_kernels(const Dimension& dimension, double coordinate, Eigen::ArrayXd& log_kernels) const;

  Smoothing smoothing_;
  std::vector<Dimension> dimensions_ = {};
  std::vector<double> cumulative_weights_ = {};  // of the points and, last, of the prior
  Eigen::ArrayXd log_coefficients_ = {};         // of the points: weight, and what makes the kernel's integral 1
  double log_prior_weight_ = 0;
};

// Returns the probability from `begin` to `end` under a Gaussian.
double gaussian_mass(double begin, double end, double mean, double bandwidth);

}  // namespace cadre::tune
