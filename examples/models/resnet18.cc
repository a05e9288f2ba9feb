#include "models/resnet18.h"

namespace models {
namespace {

torch::nn::Conv2d convolution(std::int64_t in_channels, std::int64_t out_channels, std::int64_t size,
                              std::int64_t stride) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(in_channels, out_channels, size).stride(stride).padding(size / 2).bias(false));
}

torch::nn::Sequential layer(std::int64_t in_channels, std::int64_t out_channels, std::int64_t stride) {
  return torch::nn::Sequential(BasicBlock(in_channels, out_channels, stride),
                               BasicBlock(out_channels, out_channels, 1));
}

}  // namespace

BasicBlockImpl::BasicBlockImpl(std::int64_t in_channels, std::int64_t out_channels, std::int64_t stride)
    : conv1(register_module("conv1", convolution(in_channels, out_channels, 3, stride))),
      conv2(register_module("conv2", convolution(out_channels, out_channels, 3, 1))),
      bn1(register_module("bn1", torch::nn::BatchNorm2d(out_channels))),
      bn2(register_module("bn2", torch::nn::BatchNorm2d(out_channels))) {
  if (stride == 1 && in_channels == out_channels) return;
  downsample = register_module("downsample", torch::nn::Sequential(convolution(in_channels, out_channels, 1, stride),
                                                                   torch::nn::BatchNorm2d(out_channels)));
}

torch::Tensor BasicBlockImpl::forward(const torch::Tensor& input) {
  const torch::Tensor inner = bn2(conv2(torch::relu(bn1(conv1(input)))));
  return torch::relu(inner + (downsample.is_empty() ? input : downsample->forward(input)));
}

ResNet18Impl::ResNet18Impl(std::int64_t classes)
    : conv1(register_module("conv1", convolution(1, 64, 7, 2))),
      bn1(register_module("bn1", torch::nn::BatchNorm2d(64))),
      layer1(register_module("layer1", layer(64, 64, 1))),
      layer2(register_module("layer2", layer(64, 128, 2))),
      layer3(register_module("layer3", layer(128, 256, 2))),
      layer4(register_module("layer4", layer(256, 512, 2))),
      fc(register_module("fc", torch::nn::Linear(512, classes))) {
  for (const auto& module : modules(/*include_self=*/false)) {
    if (const auto* convolution = module->as<torch::nn::Conv2d>())
      torch::nn::init::kaiming_normal_(convolution->weight, 0, torch::kFanOut, torch::kReLU);
  }
}

torch::Tensor ResNet18Impl::forward(const torch::Tensor& images) {
  torch::Tensor features = torch::relu(bn1(conv1(images)));
  features = torch::max_pool2d(features, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1);
  features = layer4->forward(layer3->forward(layer2->forward(layer1->forward(features))));
  return fc(features.mean({2, 3}));
}

}  // namespace models
