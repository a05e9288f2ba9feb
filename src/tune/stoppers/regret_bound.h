// The upper bound of the regret of the best of some evaluations, by a Gaussian process.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cadre/tune/parameters.h"
#include "tune/searchers/gaussian_process_model.h"
#include "tune/searchers/point_features.h"

namespace cadre::tune {

struct EvaluatedPoint {
  Point point = {};  // settled
  double loss = 0;   // finite
};

// The model of the best evaluations, and what the bound is made of, in units of the model's values.
struct RegretBound {
  double bound = 0;  // in units of the losses
  double beta = 0;   // squared factor of the standard deviation in confidence bounds
  double scale = 0;  // standard deviation of the losses that are modelled
  GaussianProcessModel model;
  Point lowest = {};  // the settled point with the least lower confidence bound that was found
};

class RegretBoundEvaluator {
 public:
  // `parameters` must not be empty. top_trials_ratio and min_n_trials are those of RegretBoundTerminator.
  RegretBoundEvaluator(Parameters parameters, double top_trials_ratio, std::int64_t min_n_trials, std::uint64_t seed);

  // There must be an evaluation.
  RegretBound operator()(std::span<const EvaluatedPoint> evaluations) const;

 private:
  std::vector<EvaluatedPoint> best_of(std::span<const EvaluatedPoint> evaluations) const;

  Parameters parameters_;
  PointFeatures features_;
  std::shared_ptr<const MaternKernel> kernel_;
  double top_trials_ratio_;
  std::int64_t min_n_trials_;
  std::uint64_t seed_;
};

}  // namespace cadre::tune
