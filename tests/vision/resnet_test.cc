#include "cadre/vision/resnet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "cadre/error.h"
#include "cadre/torch.h"
#include "cadre/torch/safetensors.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

// tests/compat/torch_vision_test.py compares names, shapes and results with torchvision's.
namespace cadre::vision {
namespace {

using test_support::message_of;
using ::testing::HasSubstr;

TEST(ResNet, GivesScoresToImagesOfOtherSizesAndChannels) {
  ResNet model = resnet18({.num_classes = 7, .in_channels = 1});
  const torch::NoGradGuard no_gradients;
  EXPECT_EQ(model(torch::rand({2, 1, 28, 28})).sizes(), (std::vector<std::int64_t>{2, 7}));
  EXPECT_EQ(model(torch::rand({1, 1, 65, 40})).sizes(), (std::vector<std::int64_t>{1, 7}));
}

TEST(ResNet, HasAsManyParametersAsTorchvisionSays) {
  const auto count = [](const ResNet& model) {
    std::int64_t all = 0;
    for (const torch::Tensor& parameter : model->parameters()) all += parameter.numel();
    return all;
  };
  EXPECT_EQ(count(resnet18()), 11'689'512);
  EXPECT_EQ(count(resnet34()), 21'797'672);
  EXPECT_EQ(count(resnet50()), 25'557'032);
  EXPECT_EQ(count(resnet101()), 44'549'160);
  EXPECT_EQ(count(resnet152()), 60'192'808);
}

// With a block that is an identity, features of positive numbers pass it unchanged.
TEST(ResNet, BlocksCanBeginAsIdentities) {
  for (const bool begins_as_identity : {true, false}) {
    ResNet model = resnet50({.zero_init_residual = begins_as_identity});
    model->eval();
    const torch::NoGradGuard no_gradients;
    const torch::Tensor features = torch::rand({1, 256, 8, 8});
    const torch::Tensor changed = (model->layer1->begin() + 1)->forward(features);
    EXPECT_EQ(torch::equal(features, changed), begins_as_identity);
  }
}

TEST(ResNet, TrainedWeightsGetAnotherClassifier) {
  const test_support::TemporaryDirectory directory;
  const ResNet trained = resnet18();
  save_state(directory.path() / "weights.pt", trained);
  save_safetensors(directory.path() / "weights.safetensors", trained);
  for (const bool is_pt : {true, false}) {
    ResNet model = resnet18();
    is_pt ? void(load_state(directory.path() / "weights.pt", model))
          : load_safetensors(directory.path() / "weights.safetensors", model);
    EXPECT_TRUE(torch::equal(model->conv1->weight, trained->conv1->weight));
    model->fc = model->replace_module("fc", torch::nn::Linear(model->fc->options.in_features(), 10));
    EXPECT_EQ(model(torch::rand({2, 3, 32, 32})).sizes(), (std::vector<std::int64_t>{2, 10}));
  }
}

TEST(ResNet, WeightsForOtherClassesAreNamedByBothShapes) {
  const test_support::TemporaryDirectory directory;
  save_state(directory.path() / "weights.pt", resnet18());
  ResNet model = resnet18({.num_classes = 10});
  EXPECT_THAT(message_of<InvalidArgument>([&] { load_state(directory.path() / "weights.pt", model); }),
              HasSubstr("fc.weight"));
}

TEST(ResNet, OptionsOutOfRangeAreRefused) {
  EXPECT_THAT(message_of<InvalidArgument>([] { resnet18({.num_classes = 0}); }), HasSubstr("0 classes"));
  EXPECT_THAT(message_of<InvalidArgument>([] { resnet18({.in_channels = -1}); }), HasSubstr("-1 channels"));
  EXPECT_THAT(message_of<InvalidArgument>([] { ResNet(ResNetBlock::basic, std::array<std::int64_t, 4>{1, 0, 1, 1}); }),
              HasSubstr("without blocks"));
}

}  // namespace
}  // namespace cadre::vision
