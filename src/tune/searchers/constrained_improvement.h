// The acquisition function of Bayesian optimisation with constraints.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "tune/searchers/acquisition_search.h"
#include "tune/searchers/gaussian_process_model.h"
#include "tune/searchers/point_features.h"

namespace cadre::tune {

// A model of a value that should be at most `limit`.
struct LimitedModel {
  GaussianProcessModel model;
  double limit = 0;
};

// The logarithm of the expected improvement of the loss times the probability that all limits are kept.
class ConstrainedImprovement final : public AcquisitionFunction {
 public:
  // The models must outlive it. `best`: the loss to improve on; infinite if no trial keeps all constraints, so that
  // only the probability counts. `noisy`: false: a point that is in the model brings nothing.
  ConstrainedImprovement(const PointFeatures& features, const GaussianProcessModel& loss, double best,
                         const std::vector<LimitedModel>& constraints, bool noisy)
      : features_(features), loss_(loss), best_(best), constraints_(constraints), noisy_(noisy) {}

  Eigen::VectorXd values(const std::vector<Point>& points) const override;
  double value(const Point& point, Eigen::VectorXd& gradient) const override;
  Eigen::VectorXd length_scales() const override;

 private:
  double usable(double variance) const;
  bool is_known(const Eigen::RowVectorXd& row) const;
  template <class Utility>
  void add_values(const GaussianProcessModel& model, const Eigen::MatrixXd& rows, Utility utility, double limit,
                  Eigen::VectorXd& sums) const;

  const PointFeatures& features_;
  const GaussianProcessModel& loss_;
  double best_;
  const std::vector<LimitedModel>& constraints_;
  bool noisy_;
};

}  // namespace cadre::tune
