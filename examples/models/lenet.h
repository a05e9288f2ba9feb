// A classifier of digits.
#pragma once

#include <torch/torch.h>

#include "datasets/mnist.h"

namespace models {

// A small convolutional network (LeCun et al., 1998), with dropout while it is trained. Images of 28x28
// [N, 1, 28, 28] to logarithms of the digits' probabilities [N, 10].
struct LeNetImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& images);

  torch::nn::Conv2d conv1 = register_module("conv1", torch::nn::Conv2d(1, 10, 5));
  torch::nn::Conv2d conv2 = register_module("conv2", torch::nn::Conv2d(10, 20, 5));
  torch::nn::Dropout2d conv2_drop = register_module("conv2_drop", torch::nn::Dropout2d(0.25));
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(320, 50));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(50, 10));
};
TORCH_MODULE(LeNet);

// Trains with all examples once, in batches of 64, with Adam and a learning rate that falls linearly to 0: so one or
// two epochs are enough.
void train_epoch(LeNet& classifier, const datasets::Mnist& examples);

// What a classifier, which is put into evaluation mode, says of square images of any size, [N, 1, S, S] with S > 0:
// probabilities [N, 10].
torch::Tensor classify(LeNet& classifier, const torch::Tensor& images);

// The share of all examples that it tells rightly, in evaluation mode.
double accuracy(LeNet& classifier, const datasets::Mnist& examples);

}  // namespace models
