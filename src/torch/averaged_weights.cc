#include "cadre/torch/averaged_weights.h"

#include "cadre/error.h"
#include "torch/module_state.h"

namespace cadre {
namespace {

// Returns the average after one more update. Source: get_ema_multi_avg_fn and get_swa_avg_fn of torch.optim.swa_utils.
void take_in(torch::Tensor average, const torch::Tensor& value, std::optional<double> decay, std::int64_t updates) {
  if (!decay) {
    average.copy_(average + (value - average) / static_cast<double>(updates + 1));
  } else if (average.is_floating_point() || average.is_complex()) {
    average.lerp_(value, 1 - *decay);
  } else {
    average.copy_(average * *decay + value * (1 - *decay));
  }
}

}  // namespace

AveragedWeights::AveragedWeights(const torch::nn::Module& model, AveragedWeightsOptions options) : options_(options) {
  if (options_.decay && !(*options_.decay >= 0 && *options_.decay <= 1))
    throw InvalidArgument(c10::str("decay is ", *options_.decay, "; it must be from 0 to 1"));
  for (const auto& [name, tensor] : pt::tensors_of(model)) {
    tensors_.emplace_back(name, tensor.detach().clone());
  }
  for (const torch::Tensor& parameter : model.parameters()) parameters_ += parameter.defined() ? 1 : 0;
}

// Returns the model's own tensors in the order of the averages.
std::vector<torch::Tensor> AveragedWeights::values_of(const torch::nn::Module& model) const {
  const pt::NamedTensors values = pt::tensors_of(model);
  std::vector<torch::Tensor> tensors;
  for (std::size_t i = 0; i < std::max(values.size(), tensors_.size()); ++i) {
    if (i >= values.size() || i >= tensors_.size() || values[i].first != tensors_[i].first ||
        values[i].second.sizes() != tensors_[i].second.sizes())
      throw InvalidArgument(c10::str("the model is not that of these averages: ",
                                     i < values.size() ? "its " + values[i].first : "it has no more tensors", ", and ",
                                     i < tensors_.size() ? "theirs is " + tensors_[i].first : "they have no more"));
    tensors.push_back(values[i].second);
  }
  return tensors;
}

void AveragedWeights::check_not_swapped(const char* call) const {
  if (is_swapped_)
    throw InvalidArgument(
        c10::str("the model has the averages now, and they its weights; call swap() again before ", call));
}

void AveragedWeights::update_parameters(const torch::nn::Module& model) {
  check_not_swapped("update_parameters()");
  const torch::NoGradGuard no_grad;
  const std::vector<torch::Tensor> values = values_of(model);
  for (std::size_t i = 0; i < values.size(); ++i) {
    torch::Tensor average = tensors_[i].second;
    const bool is_averaged = i < parameters_ || options_.use_buffers;
    if (is_averaged && n_averaged_ > 0) {
      take_in(average, values[i].to(average.device()), options_.decay, n_averaged_);
    } else {
      average.copy_(values[i]);
    }
  }
  ++n_averaged_;
}

void AveragedWeights::copy_to(torch::nn::Module& model) const {
  check_not_swapped("copy_to()");
  const torch::NoGradGuard no_grad;
  const std::vector<torch::Tensor> values = values_of(model);
  for (std::size_t i = 0; i < values.size(); ++i) torch::Tensor(values[i]).copy_(tensors_[i].second);
}

void AveragedWeights::swap(torch::nn::Module& model) {
  const torch::NoGradGuard no_grad;
  const std::vector<torch::Tensor> values = values_of(model);
  for (std::size_t done = 0; done < values.size(); ++done) {
    // The second call goes backwards: names that share their memory are undone in the opposite order.
    const std::size_t i = is_swapped_ ? values.size() - 1 - done : done;
    const torch::Tensor own = values[i].clone();
    torch::Tensor(values[i]).copy_(tensors_[i].second);
    tensors_[i].second.copy_(own);
  }
  is_swapped_ = !is_swapped_;
}

}  // namespace cadre
