// A small image classifier.
#pragma once

#include <torch/torch.h>

namespace models {

// Two convolutions and a linear layer: takes [N, 1, 28, 28], returns scores of the classes [N, 10].
struct ConvNetImpl : torch::nn::Module {
  // `dropout`: the share of the features that training leaves out.
  explicit ConvNetImpl(double dropout = 0) : dropout(dropout) {}

  torch::Tensor forward(const torch::Tensor& images) {
    const torch::Tensor first = torch::max_pool2d(torch::relu(conv1(images)), 2);
    const torch::Tensor second = torch::max_pool2d(torch::relu(conv2(first)), 2);
    const torch::Tensor features = second.flatten(1);
    return fc(dropout > 0 ? torch::dropout(features, dropout, is_training()) : features);
  }

  double dropout;
  torch::nn::Conv2d conv1 = register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 16, 3).padding(1)));
  torch::nn::Conv2d conv2 = register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 32, 3).padding(1)));
  torch::nn::Linear fc = register_module("fc", torch::nn::Linear(32 * 7 * 7, 10));
};
TORCH_MODULE(ConvNet);

}  // namespace models
