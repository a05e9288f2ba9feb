#include "cadre/vision/resnet.h"

#include <algorithm>
#include <string>

#include "cadre/error.h"

namespace cadre::vision {
namespace {

using torch::nn::BatchNorm2d;
using torch::nn::Conv2d;
using torch::nn::Sequential;

using Blocks = std::array<std::int64_t, 4>;  // by layer

constexpr std::int64_t kBottleneckExpansion = 4;

void check(const Blocks& blocks, const ResNetOptions& options) {
  if (options.num_classes < 1) throw InvalidArgument(c10::str("ResNet: ", options.num_classes, " classes"));
  if (options.in_channels < 1) throw InvalidArgument(c10::str("ResNet: images of ", options.in_channels, " channels"));
  if (std::ranges::min(blocks) < 1) throw InvalidArgument("ResNet: a layer without blocks");
}

Conv2d convolution(std::int64_t in_channels, std::int64_t out_channels, std::int64_t size, std::int64_t stride = 1) {
  return Conv2d(torch::nn::Conv2dOptions(in_channels, out_channels, size).stride(stride).padding(size / 2).bias(false));
}

// A block adds what its convolutions find to its input.
struct BlockShape {
  std::int64_t in_channels = 0;
  std::int64_t width = 0;  // channels between the convolutions
  std::int64_t out_channels = 0;
  std::int64_t stride = 1;
  bool begins_as_identity = false;
};

// Returns the input's way around the convolutions if their output has another shape, and nothing otherwise.
Sequential downsampling(const BlockShape& shape) {
  if (shape.stride == 1 && shape.in_channels == shape.out_channels) return nullptr;
  return Sequential(convolution(shape.in_channels, shape.out_channels, 1, shape.stride),
                    BatchNorm2d(shape.out_channels));
}

struct BasicBlockImpl : torch::nn::Module {
  explicit BasicBlockImpl(const BlockShape& shape)
      : conv1(register_module("conv1", convolution(shape.in_channels, shape.width, 3, shape.stride))),
        bn1(register_module("bn1", BatchNorm2d(shape.width))),
        conv2(register_module("conv2", convolution(shape.width, shape.out_channels, 3))),
        bn2(register_module("bn2", BatchNorm2d(shape.out_channels))),
        downsample(downsampling(shape)) {
    if (!downsample.is_empty()) register_module("downsample", downsample);
    if (shape.begins_as_identity) torch::nn::init::zeros_(bn2->weight);
  }

  torch::Tensor forward(const torch::Tensor& input) {
    const torch::Tensor change = bn2(conv2(torch::relu(bn1(conv1(input)))));
    return torch::relu(change + (downsample.is_empty() ? input : downsample->forward(input)));
  }

  Conv2d conv1;
  BatchNorm2d bn1;
  Conv2d conv2;
  BatchNorm2d bn2;
  Sequential downsample;
};
TORCH_MODULE(BasicBlock);

struct BottleneckImpl : torch::nn::Module {
  explicit BottleneckImpl(const BlockShape& shape)
      : conv1(register_module("conv1", convolution(shape.in_channels, shape.width, 1))),
        bn1(register_module("bn1", BatchNorm2d(shape.width))),
        conv2(register_module("conv2", convolution(shape.width, shape.width, 3, shape.stride))),
        bn2(register_module("bn2", BatchNorm2d(shape.width))),
        conv3(register_module("conv3", convolution(shape.width, shape.out_channels, 1))),
        bn3(register_module("bn3", BatchNorm2d(shape.out_channels))),
        downsample(downsampling(shape)) {
    if (!downsample.is_empty()) register_module("downsample", downsample);
    if (shape.begins_as_identity) torch::nn::init::zeros_(bn3->weight);
  }

  torch::Tensor forward(const torch::Tensor& input) {
    const torch::Tensor inner = torch::relu(bn2(conv2(torch::relu(bn1(conv1(input))))));
    const torch::Tensor change = bn3(conv3(inner));
    return torch::relu(change + (downsample.is_empty() ? input : downsample->forward(input)));
  }

  Conv2d conv1;
  BatchNorm2d bn1;
  Conv2d conv2;
  BatchNorm2d bn2;
  Conv2d conv3;
  BatchNorm2d bn3;
  Sequential downsample;
};
TORCH_MODULE(Bottleneck);

template <class Block>
Sequential layer(const BlockShape& first, std::int64_t blocks) {
  Sequential layer{Block(first)};
  BlockShape next = first;
  next.in_channels = first.out_channels;
  next.stride = 1;
  for (std::int64_t i = 1; i < blocks; ++i) layer->push_back(Block(next));
  return layer;
}

}  // namespace

ResNetImpl::ResNetImpl(ResNetBlock kind, const Blocks& blocks, const ResNetOptions& options)
    : conv1(nullptr), bn1(nullptr), layer1(nullptr), layer2(nullptr), layer3(nullptr), layer4(nullptr), fc(nullptr) {
  check(blocks, options);
  const bool is_basic = kind == ResNetBlock::basic;
  std::int64_t channels = 64;
  conv1 = register_module("conv1", convolution(options.in_channels, channels, 7, 2));
  bn1 = register_module("bn1", BatchNorm2d(channels));
  std::int64_t width = channels;
  std::size_t number = 0;
  for (Sequential* const next : {&layer1, &layer2, &layer3, &layer4}) {
    const BlockShape first{.in_channels = channels,
                           .width = width,
                           .out_channels = is_basic ? width : width * kBottleneckExpansion,
                           .stride = number == 0 ? 1 : 2,
                           .begins_as_identity = options.zero_init_residual};
    *next = is_basic ? layer<BasicBlock>(first, blocks[number]) : layer<Bottleneck>(first, blocks[number]);
    register_module("layer" + std::to_string(++number), *next);
    channels = first.out_channels;
    width *= 2;
  }
  fc = register_module("fc", torch::nn::Linear(channels, options.num_classes));
  for (const auto& module : modules(/*include_self=*/false)) {
    if (const auto* const convolution = module->as<Conv2d>())
      torch::nn::init::kaiming_normal_(convolution->weight, 0, torch::kFanOut, torch::kReLU);
  }
}

torch::Tensor ResNetImpl::forward(const torch::Tensor& images) {
  torch::Tensor features = torch::relu(bn1(conv1(images)));
  features = torch::max_pool2d(features, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1);
  features = layer4->forward(layer3->forward(layer2->forward(layer1->forward(features))));
  return fc(torch::adaptive_avg_pool2d(features, {1, 1}).flatten(1));
}

ResNet resnet18(const ResNetOptions& options) { return ResNet(ResNetBlock::basic, Blocks{2, 2, 2, 2}, options); }
ResNet resnet34(const ResNetOptions& options) { return ResNet(ResNetBlock::basic, Blocks{3, 4, 6, 3}, options); }
ResNet resnet50(const ResNetOptions& options) { return ResNet(ResNetBlock::bottleneck, Blocks{3, 4, 6, 3}, options); }
ResNet resnet101(const ResNetOptions& options) { return ResNet(ResNetBlock::bottleneck, Blocks{3, 4, 23, 3}, options); }
ResNet resnet152(const ResNetOptions& options) { return ResNet(ResNetBlock::bottleneck, Blocks{3, 8, 36, 3}, options); }

}  // namespace cadre::vision
