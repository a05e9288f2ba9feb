// A model with every kind of state (parameters, buffers of two types), and functions to train and compare it.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

struct SmallNetImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& images) { return fc(torch::relu(norm(conv(images))).flatten(1)); }

  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 2, 3).bias(false)));
  torch::nn::BatchNorm2d norm = register_module("norm", torch::nn::BatchNorm2d(2));
  torch::nn::Linear fc = register_module("fc", torch::nn::Linear(2 * 6 * 6, 10));
};
TORCH_MODULE(SmallNet);

// Makes one training step on fixed data.
inline void train_step(SmallNet& model, torch::optim::Optimizer& optimizer) {
  const torch::Tensor images = torch::linspace(-1, 1, 4 * 64).reshape({4, 1, 8, 8});
  const torch::Tensor labels = torch::arange(4);
  optimizer.zero_grad();
  torch::nn::functional::cross_entropy(model(images), labels).backward();
  optimizer.step();
}

// Returns copies of all parameters and buffers, for bitwise comparison.
inline std::vector<torch::Tensor> values_of(const SmallNet& model) {
  std::vector<torch::Tensor> values;
  for (const auto& tensor : model->parameters()) values.push_back(tensor.detach().clone());
  for (const auto& tensor : model->buffers()) values.push_back(tensor.clone());
  return values;
}

inline bool equal_values(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!torch::equal(a[i], b[i])) return false;
  }
  return true;
}
