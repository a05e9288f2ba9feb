// An image classifier, large enough to benefit from several workers.
#pragma once

#include <torch/torch.h>

namespace models {

// Two convolutions beside a shortcut (He et al., 2016), with torchvision's parameter names.
struct BasicBlockImpl : torch::nn::Module {
  BasicBlockImpl(std::int64_t in_channels, std::int64_t out_channels, std::int64_t stride);
  torch::Tensor forward(const torch::Tensor& input);

  torch::nn::Conv2d conv1, conv2;
  torch::nn::BatchNorm2d bn1, bn2;
  torch::nn::Sequential downsample = nullptr;  // on the shortcut, if the shape changes
};
TORCH_MODULE(BasicBlock);

// ResNet-18 for grey images: takes [N, 1, H, W], returns scores of the classes [N, classes]. Its parameters have the
// names and shapes of torchvision's resnet18(num_classes=...) with a first convolution of one input channel, so each
// can load the other's state.
struct ResNet18Impl : torch::nn::Module {
  explicit ResNet18Impl(std::int64_t classes = 10);
  torch::Tensor forward(const torch::Tensor& images);

  torch::nn::Conv2d conv1;
  torch::nn::BatchNorm2d bn1;
  torch::nn::Sequential layer1, layer2, layer3, layer4;
  torch::nn::Linear fc;
};
TORCH_MODULE(ResNet18);

}  // namespace models
