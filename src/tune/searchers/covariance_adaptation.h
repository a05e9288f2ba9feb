// The normal distribution of CMA-ES, and how it follows the best solutions.
#pragma once

#include <Eigen/Dense>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cadre::tune {

// The weights and rates of CMA-ES for a number of dimensions and a population, each at least 1.
// Source: Hansen, "The CMA Evolution Strategy: A Tutorial" (2016), equations 49 to 58.
struct CovarianceAdaptationRates {
  CovarianceAdaptationRates(std::size_t dimensions, std::size_t population);

  Eigen::VectorXd weights;  // by rank, the best first; the sum of the positive ones is 1
  Eigen::Index parents;     // number of solutions that the mean moves to
  double mu_eff;            // variance-effective number of parents
  double c_sigma, d_sigma;  // rate and damping of the step size
  double c_c, c_1, c_mu;    // rates of the covariance
  double chi;               // expected length of a standard normal vector
};

// A solution that was sampled from the distribution, now or before, or comes from elsewhere.
struct CmaSolution {
  Eigen::VectorXd values;
  std::vector<bool> exists;  // by coordinate; false: its value is what was sampled, and had no effect on the rank
  bool is_current = true;    // false: it was not sampled from the distribution as it is now
};

// A normal distribution with the mean m and the covariance sigma^2 A C A, where A is diagonal.
class CmaDistribution {
 public:
  struct State {
    std::vector<double> mean = {};
    double sigma = 0;
    std::vector<double> covariance = {};  // C, by rows
    std::vector<double> scale = {};       // the diagonal of A
    std::vector<double> sigma_path = {};  // evolution paths
    std::vector<double> covariance_path = {};
    std::int64_t generation = 0;
  };

  // C and A are the identity.
  CmaDistribution(Eigen::VectorXd mean, double sigma);
  explicit CmaDistribution(const State& state);
  State state() const;

  // Returns the point for a standard normal vector.
  Eigen::VectorXd sample(const Eigen::VectorXd& normal) const;
  // Adapts the distribution to as many solutions as the rates have weights, the best first.
  //
  // A coordinate that does not exist in a solution adds nothing to the mean, and as far as the parents lack it, its
  // standard deviation does not follow sigma. Solutions that are not current are shortened as Hansen, "Injecting
  // external solutions into CMA-ES" (2011) does.
  void adapt(const std::vector<CmaSolution>& solutions, const CovarianceAdaptationRates& rates);
  // Changes a coordinate's mean and standard deviation as little as needed for probabilities of at least alpha to
  // leave the interval around the mean, at both ends together. Its ends may be infinite, but not both.
  // Source: Hamano et al., "CMA-ES with Margin" (2022).
  void keep_margin(Eigen::Index coordinate, double lower, double upper, double alpha);

  std::size_t dimensions() const { return static_cast<std::size_t>(mean_.size()); }
  const Eigen::VectorXd& mean() const { return mean_; }
  double sigma() const { return sigma_; }
  double standard_deviation(Eigen::Index coordinate) const;
  // Returns the largest one of all coordinates.
  double largest_standard_deviation() const;
  // Returns the condition number of C.
  double condition() const;
  std::int64_t generation() const { return generation_; }

 private:
  void decompose();
  Eigen::VectorXd whitened(const Eigen::VectorXd& y) const;
  Eigen::MatrixXd steps_of(const std::vector<CmaSolution>& solutions) const;
  bool adapt_step_size(const Eigen::VectorXd& step, const CovarianceAdaptationRates& rates);
  void adapt_covariance(const Eigen::MatrixXd& steps, const Eigen::VectorXd& step, bool is_sigma_small,
                        const CovarianceAdaptationRates& rates);

  Eigen::VectorXd mean_;
  double sigma_;
  Eigen::MatrixXd covariance_;
  Eigen::VectorXd scale_;
  Eigen::VectorXd sigma_path_;
  Eigen::VectorXd covariance_path_;
  std::int64_t generation_ = 0;
  Eigen::MatrixXd axes_;     // eigenvectors of C
  Eigen::VectorXd lengths_;  // roots of its eigenvalues
};

}  // namespace cadre::tune
