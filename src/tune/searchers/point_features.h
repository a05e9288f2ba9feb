// Points of a search space as features that a stationary kernel compares.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "cadre/tune/parameters.h"
#include "tune/searchers/gaussian_process_model.h"

namespace cadre::tune {

// The coordinate of a number that always exists is a feature. A choice is a categorical one: its option, or that it
// does not exist. A number that may not exist lies on an arc around the origin, which stands for a point without it:
// so the distance of points that have it grows with their difference as if it always existed, that of a point with it
// and one without it is the same everywhere, and points without it are equal in it.
//
// Source of the arc: Swersky, Duvenaud, Snoek, Hutter and Osborne, "Raiders of the Lost Architecture: Kernels for
// Bayesian Optimization in Conditional Parameter Spaces" (2014), https://arxiv.org/abs/1409.4011; here with its length
// equal to the number's range, and its ends as far from each other as from the origin.
class PointFeatures {
 public:
  explicit PointFeatures(const Parameters& parameters);

  // Returns the kernel's features; each parameter has a length scale, with its index.
  std::vector<MaternKernel::Feature> kernel_features() const;
  Eigen::Index size() const { return num_features_; }
  // Returns the features of a settled point.
  Eigen::RowVectorXd features_of(const Point& point) const;
  // Returns the gradient in the coordinates of a function with this gradient in the features; 0 for choices and
  // parameters that do not exist.
  Eigen::RowVectorXd coordinate_gradient(const Point& point, const Eigen::RowVectorXd& gradient) const;

 private:
  enum class Form { number, choice, arc };
  struct Encoding {
    Form form = Form::number;
    Eigen::Index first = 0;  // feature
    double num_options = 0;  // of a choice
  };

  std::vector<Encoding> encodings_ = {};  // by parameter
  Eigen::Index num_features_ = 0;
};

}  // namespace cadre::tune
