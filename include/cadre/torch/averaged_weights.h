/// \file
/// Averages of a model's weights over its training, which often are better than the last ones: exponential moving
/// averages (EMA) and stochastic weight averaging (SWA), with the values and the state of
/// torch.optim.swa_utils.AveragedModel of PyTorch 2.13. Sources: "Acceleration of Stochastic Approximation by
/// Averaging", Polyak and Juditsky; "Averaging Weights Leads to Wider Optima and Better Generalization", Izmailov et
/// al.
///
///     AveragedWeights averages(model, {.decay = 0.999});
///     …
///     optimizer.step();
///     averages.update_parameters(model);
///     …
///     averages.swap(model);  // measure the averages
///     const double accuracy = test(model);
///     averages.swap(model);  // go on with the model's own
///
/// Threads: any, but each object in one thread at a time.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cadre/torch.h"

namespace cadre {

/// Options of AveragedWeights.
struct AveragedWeightsOptions {
  /// Part of the average that stays at each update, 0 to 1: an exponential moving average. Default, none: all updates
  /// count the same, as in SWA.
  std::optional<double> decay = {};
  bool use_buffers = false;  ///< true: averages buffers, too; false: has those of the last update
};

/// Averages of a model's parameters, and its buffers, on the device where they were when this was made.
class AveragedWeights {
 public:
  /// Begins with the model's present values, which the first update replaces. Throws InvalidArgument for a decay
  /// outside its range.
  explicit AveragedWeights(const torch::nn::Module& model, AveragedWeightsOptions options = {});
  /// Does the same for a handle of TORCH_MODULE.
  template <detail::ModuleHolder Holder>
  explicit AveragedWeights(const Holder& model, AveragedWeightsOptions options = {})
      : AveragedWeights(*model, options) {}

  /// Takes the model's present values into the averages. Throws InvalidArgument for a model of another structure; then
  /// nothing has changed.
  void update_parameters(const torch::nn::Module& model);
  /// Copies the averages into a model. Throws like update_parameters().
  void copy_to(torch::nn::Module& model) const;
  /// Exchanges the averages for a model's values; the second call brings both back. Until then update_parameters() and
  /// copy_to() throw InvalidArgument, as do saving and loading these averages. Throws InvalidArgument for a model of
  /// another structure.
  void swap(torch::nn::Module& model);

  /// Does the same for a handle of TORCH_MODULE.
  template <detail::ModuleHolder Holder>
  void update_parameters(const Holder& model) {
    update_parameters(*model);
  }
  /// Does the same for a handle of TORCH_MODULE.
  template <detail::ModuleHolder Holder>
  void copy_to(Holder& model) const {
    copy_to(*model);
  }
  /// Does the same for a handle of TORCH_MODULE.
  template <detail::ModuleHolder Holder>
  void swap(Holder& model) {
    swap(*model);
  }

  /// Returns the number of updates.
  std::int64_t n_averaged() const { return n_averaged_; }
  /// Internal: throws InvalidArgument between two calls of swap(). `call`: the refused one, such as "copy_to()".
  void check_not_swapped(const char* call) const;
  /// Internal: returns the averages under the names of the model.
  const std::vector<std::pair<std::string, torch::Tensor>>& tensors() const { return tensors_; }
  /// Internal: sets the number of updates.
  void set_n_averaged(std::int64_t number) { n_averaged_ = number; }

 private:
  std::vector<torch::Tensor> values_of(const torch::nn::Module& model) const;

  AveragedWeightsOptions options_;
  std::vector<std::pair<std::string, torch::Tensor>> tensors_;  // parameters, then buffers
  std::size_t parameters_ = 0;                                  // number of them
  std::int64_t n_averaged_ = 0;
  bool is_swapped_ = false;
};

}  // namespace cadre
