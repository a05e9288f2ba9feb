/// \file
/// Metrics that are computed over all ranks.
#pragma once

#include <torch/torch.h>

namespace cadre::train {

/// The weighted mean of values over all ranks, such as a loss over a whole epoch.
class MeanMetric {
 public:
  /// Adds a value. Throws InvalidArgument for a weight that is negative or not finite.
  void update(double value, double weight = 1);
  /// Adds each value of a tensor of any real type, with this weight each. Values on a GPU are summed there, so that the
  /// caller does not wait for the GPU. Throws InvalidArgument for an invalid weight, and for a tensor that is undefined
  /// or complex.
  void update(const torch::Tensor& values, double weight = 1);
  /// Returns the mean of all values that the ranks have added since reset(); NaN if there are none or all
  /// weights are 0. Collective. Throws EngineError if another rank has ended.
  double compute() const;
  /// Discards all values that this rank has added.
  void reset();

 private:
  double sum_ = 0;
  double weight_ = 0;
  torch::Tensor sum_on_device_;
};

}  // namespace cadre::train
