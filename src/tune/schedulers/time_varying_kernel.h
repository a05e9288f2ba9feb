// The kernel of Population Based Bandits, under which older results say less.
#pragma once

#include "tune/searchers/gaussian_process_model.h"

namespace cadre::tune {

// The squared exponential of the features but the first, which is the time t, times (1 - epsilon)^(|t - t'| / 2).
//
// Hyper-parameters: the logarithms of the inverse squared length scale, which the features share, of the rate
// -ln(1 - epsilon) / 2, and of the variance.
// Sources: Bogunovic, Scarlett and Cevher, "Time-Varying Gaussian Process Bandit Optimization" (2016),
// https://arxiv.org/abs/1601.06650; Parker-Holder, Nguyen and Roberts (2020), see PB2.
class TimeVaryingKernel final : public Kernel {
 public:
  // The mode of the prior of epsilon, at which a fit begins: that of Ray Tune.
  static constexpr double kUsualEpsilon = 0.1;

  static double length_scale(const Eigen::VectorXd& hyperparameters);
  static double epsilon(const Eigen::VectorXd& hyperparameters);
  // Returns a start for fit().
  static Hyperparameters start();

  Eigen::Index num_hyperparameters() const override { return 3; }
  double variance(const Eigen::VectorXd& hyperparameters) const override;
  Eigen::VectorXd covariances(const Points& points, const Eigen::RowVectorXd& point,
                              const Eigen::VectorXd& hyperparameters) const override;
  void add_gradient(const Points& points, const Eigen::RowVectorXd& point, const Eigen::VectorXd& hyperparameters,
                    const Eigen::VectorXd& weights, Eigen::Ref<Eigen::VectorXd> gradient) const override;
  // The derivative in the time is given as 0: searches keep the time.
  Eigen::RowVectorXd point_gradient(const Points& points, const Eigen::RowVectorXd& point,
                                    const Eigen::VectorXd& hyperparameters,
                                    const Eigen::VectorXd& weights) const override;
  double log_prior(const Eigen::VectorXd& hyperparameters, Eigen::Ref<Eigen::VectorXd> gradient) const override;
};

}  // namespace cadre::tune
