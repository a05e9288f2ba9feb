// Averages of weights, and scales of gradients; what they come to is compared with Python's in
// tests/compat/torch_state_test.py.
#include "cadre/torch/averaged_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "cadre/torch/grad_scaler.h"
#include "small_net.h"
#include "support/message_of.h"

namespace cadre {
namespace {

using test_support::message_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(AveragedWeights, AreTheMeanOfAllUpdatesOrFollowThem) {
  torch::nn::Linear model(1, 1);
  AveragedWeights mean(model);
  AveragedWeights moving(model, {.decay = 0.5});
  for (const double value : {1.0, 2.0, 6.0}) {
    const torch::NoGradGuard no_grad;
    model->weight.fill_(value);
    mean.update_parameters(model);
    moving.update_parameters(model);
  }
  mean.copy_to(model);
  EXPECT_EQ(model->weight.item<double>(), 3);
  moving.copy_to(model);
  EXPECT_EQ(model->weight.item<double>(), 0.5 * (0.5 * 1 + 0.5 * 2) + 0.5 * 6);
  EXPECT_EQ(mean.n_averaged(), 3);
}

TEST(AveragedWeights, ASwapIsUndoneByAnother) {
  SmallNet model;
  const auto before = values_of(model);
  AveragedWeights averages(model);
  averages.update_parameters(model);
  torch::optim::SGD sgd(model->parameters(), 0.1);
  train_step(model, sgd);
  const auto after = values_of(model);
  averages.swap(model);
  EXPECT_TRUE(equal_values(values_of(model), before));
  EXPECT_THAT(message_of<InvalidArgument>([&] { averages.update_parameters(model); }), HasSubstr("call swap() again"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { averages.copy_to(model); }), HasSubstr("call swap() again"));
  averages.swap(model);
  EXPECT_TRUE(equal_values(values_of(model), after));
}

// As the embedding and the last layer of many language models.
TEST(AveragedWeights, ASwapOfParametersThatAreOneTensorIsUndoneByAnother) {
  struct Tied : torch::nn::Module {
    torch::Tensor first = register_parameter("first", torch::ones({2}));
    torch::Tensor second = register_parameter("second", first);
  };
  Tied model;
  AveragedWeights averages(model);
  averages.update_parameters(model);
  {
    const torch::NoGradGuard no_grad;
    model.first.fill_(3);
  }
  averages.swap(model);
  EXPECT_TRUE(torch::equal(model.second, torch::ones({2})));
  averages.swap(model);
  EXPECT_TRUE(torch::equal(model.second, torch::full({2}, 3.0)));
  averages.copy_to(model);
  EXPECT_TRUE(torch::equal(model.first, torch::ones({2})));
}

TEST(AveragedWeights, AnotherModelAndADecayThatIsNoneAreRefused) {
  SmallNet model;
  AveragedWeights averages(model);
  torch::nn::Linear other(2, 2);
  EXPECT_THAT(message_of<InvalidArgument>([&] { averages.update_parameters(other); }),
              HasSubstr("its weight, and theirs is conv.weight"));
  EXPECT_EQ(averages.n_averaged(), 0);
  EXPECT_THAT(message_of<InvalidArgument>([&] { AveragedWeights(model, {.decay = 1.5}); }), HasSubstr("from 0 to 1"));
}

class GradScalerTest : public ::testing::Test {
 protected:
  void backward(double factor) {
    sgd_.zero_grad();
    scaler_.scale(model_(torch::ones({1, 1})).sum() * factor).backward();
  }

  torch::nn::Linear model_{1, 1};
  torch::optim::SGD sgd_{model_->parameters(), 0.1};
  GradScaler scaler_{{.init_scale = 8, .growth_interval = 2}};
};

TEST_F(GradScalerTest, LeavesOutStepsThatAreNotFiniteAndAdaptsTheScale) {
  const double before = model_->weight.item<double>();
  backward(std::numeric_limits<double>::infinity());
  EXPECT_FALSE(scaler_.step(sgd_));
  scaler_.update();
  EXPECT_EQ(model_->weight.item<double>(), before);
  EXPECT_EQ(scaler_.get_scale(), 4);
  for (int i = 0; i < 2; ++i) {
    backward(1);
    EXPECT_EQ(model_->weight.grad().item<double>(), 4);
    EXPECT_TRUE(scaler_.step(sgd_));
    EXPECT_EQ(model_->weight.grad().item<double>(), 1);
    scaler_.update();
  }
  EXPECT_FLOAT_EQ(static_cast<float>(model_->weight.item<double>()), static_cast<float>(before - 0.2));
  EXPECT_EQ(scaler_.get_scale(), 8);
}

TEST_F(GradScalerTest, OneThatIsNotEnabledDoesNothing) {
  GradScaler off({.enabled = false});
  const torch::Tensor loss = model_(torch::ones({1, 1})).sum();
  EXPECT_TRUE(off.scale(loss).is_same(loss));
  loss.backward();
  EXPECT_TRUE(off.step(sgd_));
  off.update();
  EXPECT_EQ(off.get_scale(), 1);
  EXPECT_TRUE(off.state_dict().empty());
  EXPECT_THAT(message_of<InvalidArgument>([&] { scaler_.load_state_dict(off.state_dict()); }),
              HasSubstr("saved by one that was not enabled"));
}

TEST_F(GradScalerTest, CallsInTheWrongOrderAndOptionsThatCannotBeAreRefused) {
  EXPECT_THAT(message_of<InvalidArgument>([&] { scaler_.step(sgd_); }), HasSubstr("before scale"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { scaler_.update(); }), HasSubstr("before step"));
  backward(1);
  scaler_.unscale_(sgd_);
  EXPECT_THAT(message_of<InvalidArgument>([&] { scaler_.unscale_(sgd_); }), HasSubstr("twice since update"));
  EXPECT_TRUE(scaler_.step(sgd_));
  EXPECT_THAT(message_of<InvalidArgument>([&] { scaler_.step(sgd_); }), HasSubstr("step was called twice"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { scaler_.unscale_(sgd_); }), HasSubstr("after step"));
  EXPECT_THAT(
      message_of<InvalidArgument>([] { GradScaler({.init_scale = 0, .growth_factor = 1, .growth_interval = 0}); }),
      AllOf(HasSubstr("init_scale"), HasSubstr("growth_factor"), HasSubstr("growth_interval")));
}

}  // namespace
}  // namespace cadre
