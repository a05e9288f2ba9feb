// The search for the point with the highest value of an acquisition function, in spaces of numbers and choices.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "cadre/tune/parameters.h"

namespace cadre::tune {

// A function of points, which is smooth in ordered parameters.
class AcquisitionFunction {
 public:
  virtual ~AcquisitionFunction() = default;

  // Returns the values at settled points.
  virtual Eigen::VectorXd values(const std::vector<Point>& points) const = 0;
  // Returns the value at a settled point, or at one between values of ordered parameters. Sets the gradient in its
  // coordinates.
  virtual double value(const Point& point, Eigen::VectorXd& gradient) const = 0;
  // Returns steps that change the value about equally, one for each coordinate.
  virtual Eigen::VectorXd length_scales() const = 0;
};

struct AcquisitionSearch {
  std::int64_t num_candidates = 1000;   // random points, of which the best become starts; at least 1
  std::int64_t num_local_searches = 5;  // from the best candidate and others, drawn by their values; at least 1
  std::vector<Point> incumbents = {};   // good settled points: some candidates are near them, the first is a start
};

// Returns the settled point with the highest value that it finds: of the random candidates, some become starts of a
// local search. It follows the gradient in all ordered parameters as if they were continua, then by turns the gradient
// in the numbers of a continuum and values of the others. Around the best point found it tries points that differ in
// several parameters at once.
// Source: Optuna's GPSampler; candidates near good points: Eriksson, Pearce, Gardner, Turner and Poloczek, "Scalable
// Global Optimization via Local Bayesian Optimization" (2019), https://arxiv.org/abs/1910.01739.
Point maximize_acquisition(const Parameters& parameters, const AcquisitionFunction& function,
                           const AcquisitionSearch& search, base::RandomStream& stream);

}  // namespace cadre::tune
