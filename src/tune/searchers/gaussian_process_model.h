// Gaussian process regression: a kernel, its fit to values at points, and the posterior.
//
// Source: Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006).
#pragma once

#include <Eigen/Core>
#include <memory>
#include <vector>

namespace cadre::tune {

// A covariance function of points, which are rows of features. Its hyper-parameters are given as logarithms.
class Kernel {
 public:
  using Points = Eigen::Ref<const Eigen::MatrixXd, 0, Eigen::OuterStride<>>;

  virtual ~Kernel() = default;

  virtual Eigen::Index num_hyperparameters() const = 0;
  // Returns the covariance of a point with itself, the same everywhere.
  virtual double variance(const Eigen::VectorXd& hyperparameters) const = 0;
  // Returns the covariance of `point` with each of `points`.
  virtual Eigen::VectorXd covariances(const Points& points, const Eigen::RowVectorXd& point,
                                      const Eigen::VectorXd& hyperparameters) const = 0;
  // Adds to `gradient` that of the sum of these covariances, weighted, in the hyper-parameters.
  virtual void add_gradient(const Points& points, const Eigen::RowVectorXd& point,
                            const Eigen::VectorXd& hyperparameters, const Eigen::VectorXd& weights,
                            Eigen::Ref<Eigen::VectorXd> gradient) const = 0;
  // Returns the gradient of the same sum in the features of `point`.
  virtual Eigen::RowVectorXd point_gradient(const Points& points, const Eigen::RowVectorXd& point,
                                            const Eigen::VectorXd& hyperparameters,
                                            const Eigen::VectorXd& weights) const = 0;
  // Returns the logarithm of the prior density of the hyper-parameters, but for a constant, and adds its gradient.
  virtual double log_prior(const Eigen::VectorXd& hyperparameters, Eigen::Ref<Eigen::VectorXd> gradient) const = 0;
};

// The Matérn kernel with smoothness 5/2 and automatic relevance determination: the squared distance of two points is
// the sum of their squared differences, each times an inverse squared length scale.
//
// Hyper-parameters: the logarithms of the inverse squared length scales, and that of the variance.
class MaternKernel final : public Kernel {
 public:
  struct Feature {
    Eigen::Index length_scale = 0;  // which it has; features may share one
    bool categorical = false;       // true: any two different values differ by 1
  };

  explicit MaternKernel(std::vector<Feature> features);

  Eigen::Index num_length_scales() const { return num_length_scales_; }

  Eigen::Index num_hyperparameters() const override { return num_length_scales_ + 1; }
  double variance(const Eigen::VectorXd& hyperparameters) const override;
  Eigen::VectorXd covariances(const Points& points, const Eigen::RowVectorXd& point,
                              const Eigen::VectorXd& hyperparameters) const override;
  void add_gradient(const Points& points, const Eigen::RowVectorXd& point, const Eigen::VectorXd& hyperparameters,
                    const Eigen::VectorXd& weights, Eigen::Ref<Eigen::VectorXd> gradient) const override;
  Eigen::RowVectorXd point_gradient(const Points& points, const Eigen::RowVectorXd& point,
                                    const Eigen::VectorXd& hyperparameters,
                                    const Eigen::VectorXd& weights) const override;
  double log_prior(const Eigen::VectorXd& hyperparameters, Eigen::Ref<Eigen::VectorXd> gradient) const override;

 private:
  Eigen::ArrayXd squared_differences(const Points& points, const Eigen::RowVectorXd& point, Eigen::Index feature) const;
  Eigen::ArrayXd squared_distances(const Points& points, const Eigen::RowVectorXd& point,
                                   const Eigen::VectorXd& hyperparameters) const;

  std::vector<Feature> features_;
  Eigen::Index num_length_scales_ = 0;
};

struct Hyperparameters {
  Eigen::VectorXd kernel = {};
  double log_noise = 0;  // of the variance of the noise of values

  bool operator==(const Hyperparameters&) const = default;
};

// The smallest variance of noise, for values that have none; the values should have a variance of about 1.
inline constexpr double kLeastNoise = 1e-7;

// Values at points.
struct TrainingData {
  Eigen::MatrixXd points = {};  // a row each
  Eigen::VectorXd values = {};
};

// Returns the logarithm of the density of the values times that of the prior of the hyper-parameters, but for a
// constant, and sets its gradient: the kernel's hyper-parameters, then the noise. Negative infinity where the matrix of
// covariances is singular.
double log_posterior_density(const Kernel& kernel, const TrainingData& data, const Hyperparameters& hyperparameters,
                             Eigen::VectorXd& gradient);

// Returns a start for fit(): length scales and variances of 1.
Hyperparameters default_hyperparameters(const Kernel& kernel);

// Returns the hyper-parameters with the highest density near `start`. `noisy`: false keeps the noise at kLeastNoise.
Hyperparameters fit(const Kernel& kernel, const TrainingData& data, bool noisy, const Hyperparameters& start);

// Begins with the fit to every other value if there are many, and so on, which takes a fraction of the time.
Hyperparameters fit_by_halves(const Kernel& kernel, const TrainingData& data, bool noisy);

class GaussianProcessModel {
 public:
  // The distribution of the function's value at a point, without noise.
  struct Posterior {
    double mean = 0;
    double variance = 0;
    Eigen::VectorXd covariances = {};  // with the data
    Eigen::VectorXd whitened = {};     // the inverse of the Cholesky factor times the covariances
  };

  GaussianProcessModel(std::shared_ptr<const Kernel> kernel, TrainingData data, Hyperparameters hyperparameters);

  const Hyperparameters& hyperparameters() const { return hyperparameters_; }
  const TrainingData& data() const { return data_; }

  Posterior posterior(const Eigen::RowVectorXd& point) const;
  // Sets the means and variances at many points.
  void posterior(const Eigen::MatrixXd& points, Eigen::VectorXd& means, Eigen::VectorXd& variances) const;
  // Returns the gradient, in the features of a point, of a function of the posterior there, with these derivatives in
  // its mean and variance.
  Eigen::RowVectorXd gradient(const Eigen::RowVectorXd& point, const Posterior& posterior, double in_mean,
                              double in_variance) const;
  // Adds a value, with the same hyper-parameters, in a time that grows with the square of the number of values.
  void add(const Eigen::RowVectorXd& point, double value);

 private:
  void update_weights();

  std::shared_ptr<const Kernel> kernel_;
  TrainingData data_;
  Hyperparameters hyperparameters_;
  Eigen::MatrixXd root_ = {};     // the Cholesky factor of the matrix of covariances, a lower triangle
  Eigen::VectorXd weights_ = {};  // the values times the inverse of the matrix of covariances
};

}  // namespace cadre::tune
