// set_hyperparameters: which entries of a config reach which optimizer, and which values are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>
#include <string>

#include "cadre/torch.h"
#include "small_net.h"

namespace {

using cadre::Config;
using testing::AllOf;
using testing::HasSubstr;

std::string error_of(torch::optim::Optimizer& optimizer, const Config& config) {
  try {
    cadre::set_hyperparameters(optimizer, config);
  } catch (const cadre::InvalidArgument& error) {
    return error.what();
  }
  return "no error";
}

TEST(HyperparametersTest, sets_what_the_optimizer_has_in_all_groups_and_passes_over_the_rest) {
  SmallNet model;
  std::vector<torch::optim::OptimizerParamGroup> groups{model->conv->parameters(), model->fc->parameters()};
  torch::optim::SGD optimizer(std::move(groups), torch::optim::SGDOptions(0.1).weight_decay(0.5));
  cadre::set_hyperparameters(optimizer,
                             {{"lr", 1}, {"momentum", 0.9}, {"nesterov", true}, {"betas", "none"}, {"x", 3}});
  for (auto& group : optimizer.param_groups()) {
    const auto& options = static_cast<const torch::optim::SGDOptions&>(group.options());
    EXPECT_EQ(options.lr(), 1);
    EXPECT_EQ(options.momentum(), 0.9);
    EXPECT_EQ(options.weight_decay(), 0.5);
    EXPECT_TRUE(options.nesterov());
  }
}

TEST(HyperparametersTest, adam_takes_its_betas_as_a_list) {
  SmallNet model;
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(0.1));
  cadre::set_hyperparameters(optimizer, {{"betas", cadre::list(0.5, 0.75)}, {"eps", 1e-4}, {"amsgrad", true}});
  const auto& options = static_cast<const torch::optim::AdamWOptions&>(optimizer.param_groups()[0].options());
  EXPECT_EQ(options.betas(), std::make_tuple(0.5, 0.75));
  EXPECT_EQ(options.eps(), 1e-4);
  EXPECT_THAT(error_of(optimizer, {{"betas", cadre::list(0.5, 1.0)}}),
              HasSubstr("\"betas\": [0.5, 1.0] is not in [0, 1)"));
  EXPECT_THAT(error_of(optimizer, {{"betas", cadre::list(0.5)}}), HasSubstr("list of two"));
  EXPECT_THAT(error_of(optimizer, {{"betas", 0.5}}), HasSubstr("\"betas\""));
}

TEST(HyperparametersTest, all_bad_values_are_named_and_nothing_is_set) {
  SmallNet model;
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.5));
  EXPECT_THAT(error_of(optimizer, {{"lr", -1}, {"momentum", "high"}, {"nesterov", 1}, {"weight_decay", 0.25}}),
              AllOf(HasSubstr("SGD"), HasSubstr("\"lr\": -1 is negative"), HasSubstr("\"momentum\""),
                    HasSubstr("\"nesterov\"")));
  EXPECT_THAT(error_of(optimizer, {{"lr", std::numeric_limits<double>::quiet_NaN()}}), HasSubstr("is not finite"));
  EXPECT_THAT(error_of(optimizer, {{"nesterov", true}, {"dampening", 0.5}}), HasSubstr("no dampening"));
  const auto& options = static_cast<const torch::optim::SGDOptions&>(optimizer.param_groups()[0].options());
  EXPECT_EQ(options.lr(), 0.1);
  EXPECT_EQ(options.momentum(), 0.5);
  EXPECT_EQ(options.weight_decay(), 0);
}

TEST(HyperparametersTest, options_that_need_more_state_can_be_switched_on_in_the_middle_of_training) {
  SmallNet model;
  torch::optim::RMSprop rmsprop(model->parameters(), torch::optim::RMSpropOptions(0.01));
  train_step(model, rmsprop);
  cadre::set_hyperparameters(rmsprop, {{"momentum", 0.9}, {"centered", true}});
  train_step(model, rmsprop);
  torch::optim::Adam adam(model->parameters(), torch::optim::AdamOptions(0.01));
  train_step(model, adam);
  cadre::set_hyperparameters(adam, {{"amsgrad", true}});
  train_step(model, adam);
  torch::optim::SGD sgd(model->parameters(), torch::optim::SGDOptions(0.01));
  train_step(model, sgd);
  cadre::set_hyperparameters(sgd, {{"momentum", 0.9}});
  train_step(model, sgd);
}

}  // namespace
