/// \file
/// Residual networks that classify images, with the parameters' names, shapes and results of torchvision's (0.28), so
/// that weights trained there can be loaded.
///
///     vision::ResNet model = vision::resnet50();
///     load_state("resnet50.pt", model);  // or load_safetensors
///     model->fc = model->replace_module("fc", torch::nn::Linear(model->fc->options.in_features(), 10));
///
/// Source: "Deep Residual Learning for Image Recognition", He et al., 2016. As in torchvision, the 3 by 3 convolution
/// of a bottleneck has the stride, not the 1 by 1 before it ("ResNet V1.5").
#pragma once

#include <torch/torch.h>

#include <array>
#include <cstdint>

namespace cadre::vision {

/// Options of residual networks.
struct ResNetOptions {
  std::int64_t num_classes = 1000;  ///< how many scores an image gets, above 0
  std::int64_t in_channels = 3;     ///< of the images, above 0: 1 for grey ones
  /// If true, each block begins as an identity: the last normalisation of its convolutions is initialised with 0.
  bool zero_init_residual = false;
};

/// The kinds of blocks.
enum class ResNetBlock {
  basic,       ///< two 3 by 3 convolutions
  bottleneck,  ///< a 3 by 3 convolution of a fourth of the channels, between two 1 by 1 ones
};

/// A residual network. Its members are torchvision's.
class ResNetImpl : public torch::nn::Module {
 public:
  /// Makes a network with random weights, drawn as torchvision does; `blocks` has the number of blocks of each layer,
  /// above 0. Throws InvalidArgument for options out of range.
  ResNetImpl(ResNetBlock kind, const std::array<std::int64_t, 4>& blocks, const ResNetOptions& options = {});

  /// Takes images of the shape [N, in_channels, height, width], of 32 by 32 pixels and more (the mean of what is left
  /// of them is taken, so that the size need not be 224), and returns their scores, [N, num_classes], without a
  /// softmax.
  torch::Tensor forward(const torch::Tensor& images);

  torch::nn::Conv2d conv1;       ///< 7 by 7, stride 2
  torch::nn::BatchNorm2d bn1;    ///< after conv1
  torch::nn::Sequential layer1;  ///< blocks
  torch::nn::Sequential layer2;  ///< blocks of twice the channels and half the size
  torch::nn::Sequential layer3;  ///< blocks of twice the channels and half the size
  torch::nn::Sequential layer4;  ///< blocks of twice the channels and half the size
  torch::nn::Linear fc;          ///< the scores of the last layer's means
};
/// A shared pointer to a ResNetImpl, as of all modules of libtorch.
TORCH_MODULE(ResNet);

ResNet resnet18(const ResNetOptions& options = {});   ///< 18 layers, 11.7 million parameters
ResNet resnet34(const ResNetOptions& options = {});   ///< 34 layers, 21.8 million parameters
ResNet resnet50(const ResNetOptions& options = {});   ///< 50 layers with bottlenecks, 25.6 million parameters
ResNet resnet101(const ResNetOptions& options = {});  ///< 101 layers with bottlenecks, 44.5 million parameters
ResNet resnet152(const ResNetOptions& options = {});  ///< 152 layers with bottlenecks, 60.2 million parameters

}  // namespace cadre::vision
