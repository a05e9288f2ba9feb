// A classifier of digits.
#pragma once

#include <torch/torch.h>

#include "datasets/mnist.h"

namespace models {

// A small convolutional network (LeCun et al., 1998), with dropout in training mode. Takes images [N, 1, 28, 28],
// returns logarithms of the digits' probabilities [N, 10].
struct LeNetImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& images);

  torch::nn::Conv2d conv1 = register_module("conv1", torch::nn::Conv2d(1, 10, 5));
  torch::nn::Conv2d conv2 = register_module("conv2", torch::nn::Conv2d(10, 20, 5));
  torch::nn::Dropout2d conv2_drop = register_module("conv2_drop", torch::nn::Dropout2d(0.25));
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(320, 50));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(50, 10));
};
TORCH_MODULE(LeNet);

// Trains on all examples once, in batches of 64, with Adam and a learning rate that falls linearly to 0, so that one or
// two epochs are enough.
void train_epoch(LeNet& classifier, const datasets::Mnist& examples);

// Returns the classifier's probabilities [N, 10] for square images of any size, [N, 1, S, S] with S > 0. Puts the
// classifier into evaluation mode.
torch::Tensor classify(LeNet& classifier, const torch::Tensor& images);

// Returns the accuracy on all examples, from 0 to 1, in evaluation mode.
double accuracy(LeNet& classifier, const datasets::Mnist& examples);

}  // namespace models
