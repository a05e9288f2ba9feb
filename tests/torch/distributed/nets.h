// Small nets that are difficult for data parallelism, and data for them.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace cadre::test_support {

// A net without batch normalisation: the gradient of a batch is the mean of its parts' gradients.
struct PlainNetImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& images) {
    return last(torch::relu(first(torch::max_pool2d(torch::relu(conv(images)), 2).flatten(1))));
  }

  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 4, 3).padding(1)));
  torch::nn::Linear first = register_module("first", torch::nn::Linear(4 * 4 * 4, 16));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(16, 10));
};
TORCH_MODULE(PlainNet);

// A net with branches, of which the caller chooses one per pass; `idle` is never used.
struct BranchNetImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& images, bool left_one) {
    const torch::Tensor features = torch::relu(trunk(images.flatten(1)));
    return left_one ? left(features) : right(features);
  }

  torch::nn::Linear trunk = register_module("trunk", torch::nn::Linear(64, 8));
  torch::nn::Linear left = register_module("left", torch::nn::Linear(8, 10));
  torch::nn::Linear right = register_module("right", torch::nn::Linear(8, 10));
  torch::nn::Linear idle = register_module("idle", torch::nn::Linear(3, 3));
};
TORCH_MODULE(BranchNet);

struct Data {
  torch::Tensor images;  // [n, 1, 8, 8]
  torch::Tensor labels;  // [n]

  Data rows(std::int64_t begin, std::int64_t end) const {
    return {images.slice(0, begin, end), labels.slice(0, begin, end)};
  }
};

inline Data make_data(std::int64_t count) {
  const auto generator = at::detail::createCPUGenerator(7);
  return {torch::randn({count, 1, 8, 8}, generator), torch::randint(0, 10, {count}, generator, torch::kLong)};
}

inline torch::Tensor loss_of(const torch::Tensor& output, const Data& data) {
  return torch::nn::functional::cross_entropy(output, data.labels);
}

// Returns the values of all tensors, concatenated.
inline torch::Tensor flat(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> rows;
  for (const torch::Tensor& tensor : tensors) rows.push_back(tensor.detach().to(torch::kFloat).flatten());
  return torch::cat(rows);
}

// Returns all gradients, concatenated; zeros for a parameter without one.
inline torch::Tensor flat_gradients(const torch::nn::Module& model) {
  std::vector<torch::Tensor> rows;
  for (const torch::Tensor& parameter : model.parameters()) {
    rows.push_back((parameter.grad().defined() ? parameter.grad() : torch::zeros_like(parameter)).to_dense().flatten());
  }
  return torch::cat(rows).clone();
}

inline double distance(const torch::Tensor& a, const torch::Tensor& b) { return (a - b).abs().max().item<double>(); }

inline void drop_gradients(const torch::nn::Module& model) {
  for (torch::Tensor& parameter : model.parameters()) parameter.mutable_grad().reset();
}

}  // namespace cadre::test_support
