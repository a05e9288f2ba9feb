// save_state and load_state: round trips, refused files, and the state after a refusal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>

#include "cadre/torch.h"
#include "small_net.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace {

using cadre::test_support::message_of;
using cadre::test_support::TemporaryDirectory;

using testing::AllOf;
using testing::HasSubstr;
using MakeOptimizer = std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::Tensor>)>;

template <class Optimizer, class Options>
MakeOptimizer maker(Options options) {
  return [options](std::vector<torch::Tensor> parameters) {
    return std::make_unique<Optimizer>(std::move(parameters), options);
  };
}

struct OptimizerCase {
  std::string kind;
  std::string name;
  MakeOptimizer make;        // like the saved one
  MakeOptimizer make_other;  // other options: those of the file must win
};

std::vector<OptimizerCase> optimizer_cases() {
  using namespace torch::optim;
  return {
      {"SGD", "sgd", maker<SGD>(SGDOptions(0.1)), maker<SGD>(SGDOptions(0.5))},
      {"SGD", "sgd_momentum", maker<SGD>(SGDOptions(0.1).momentum(0.9).weight_decay(1e-4).nesterov(true)),
       maker<SGD>(SGDOptions(0.5))},
      {"Adam", "adam", maker<Adam>(AdamOptions(1e-2).weight_decay(1e-3)), maker<Adam>(AdamOptions(0.5))},
      {"Adam", "adam_amsgrad", maker<Adam>(AdamOptions(1e-2).amsgrad(true).betas({0.8, 0.99})),
       maker<Adam>(AdamOptions(0.5))},
      {"AdamW", "adamw", maker<AdamW>(AdamWOptions(1e-2)), maker<AdamW>(AdamWOptions(0.5))},
      {"RMSprop", "rmsprop", maker<RMSprop>(RMSpropOptions(1e-2)), maker<RMSprop>(RMSpropOptions(0.5))},
      {"RMSprop", "rmsprop_all", maker<RMSprop>(RMSpropOptions(1e-2).momentum(0.9).centered(true)),
       maker<RMSprop>(RMSpropOptions(0.5))},
      {"Adagrad", "adagrad", maker<Adagrad>(AdagradOptions(1e-2).lr_decay(0.01)), maker<Adagrad>(AdagradOptions(0.5))},
  };
}

class StateTest : public testing::Test {
 protected:
  StateTest() { torch::manual_seed(1); }

  TemporaryDirectory directory_;
  const std::filesystem::path file_ = directory_ / "checkpoint.pt";
};

TEST_F(StateTest, next_steps_after_loading_are_bitwise_those_of_the_original) {
  for (const OptimizerCase& item : optimizer_cases()) {
    SCOPED_TRACE(item.name);
    SmallNet model;
    const auto optimizer = item.make(model->parameters());
    for (int i = 0; i < 3; ++i) train_step(model, *optimizer);
    cadre::save_state(file_, model, *optimizer, 3);

    SmallNet loaded;
    const auto loaded_optimizer = item.make_other(loaded->parameters());
    train_step(loaded, *loaded_optimizer);  // gives it a state of its own, which load_state must replace
    EXPECT_EQ(cadre::load_state(file_, loaded, *loaded_optimizer), 3);
    EXPECT_TRUE(equal_values(values_of(model), values_of(loaded)));
    for (int i = 0; i < 2; ++i) {
      train_step(model, *optimizer);
      train_step(loaded, *loaded_optimizer);
      EXPECT_TRUE(equal_values(values_of(model), values_of(loaded)));
    }
  }
}

TEST_F(StateTest, fresh_optimizer_round_trips) {
  for (const OptimizerCase& item : optimizer_cases()) {
    SCOPED_TRACE(item.name);
    SmallNet model;
    const auto optimizer = item.make(model->parameters());
    cadre::save_state(file_, model, *optimizer, 0);
    SmallNet loaded;
    const auto loaded_optimizer = item.make_other(loaded->parameters());
    EXPECT_EQ(cadre::load_state(file_, loaded, *loaded_optimizer), 0);
    train_step(model, *optimizer);
    train_step(loaded, *loaded_optimizer);
    EXPECT_TRUE(equal_values(values_of(model), values_of(loaded)));
  }
}

TEST_F(StateTest, parameter_groups_keep_their_own_options) {
  const auto make = [](const SmallNet& model, double first, double second) {
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(model->conv->parameters(), std::make_unique<torch::optim::SGDOptions>(first));
    groups.emplace_back(model->fc->parameters(), std::make_unique<torch::optim::SGDOptions>(second));
    return torch::optim::SGD(std::move(groups), torch::optim::SGDOptions(1));
  };
  SmallNet model;
  auto optimizer = make(model, 0.1, 0.2);
  cadre::save_state(file_, model, optimizer, 1);
  SmallNet loaded;
  auto loaded_optimizer = make(loaded, 0.5, 0.5);
  cadre::load_state(file_, loaded, loaded_optimizer);
  EXPECT_EQ(loaded_optimizer.param_groups()[0].options().get_lr(), 0.1);
  EXPECT_EQ(loaded_optimizer.param_groups()[1].options().get_lr(), 0.2);
}

TEST_F(StateTest, model_alone_round_trips_with_its_buffers) {
  SmallNet model;
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  train_step(model, optimizer);
  cadre::save_state(file_, model, 7);
  SmallNet loaded;
  EXPECT_EQ(cadre::load_state(file_, loaded), 7);
  EXPECT_TRUE(equal_values(values_of(model), values_of(loaded)));
  cadre::save_state(file_, model, optimizer, 8);  // the file has an optimizer that is not loaded
  EXPECT_EQ(cadre::load_state(file_, loaded), 8);
}

TEST_F(StateTest, model_of_another_shape_names_every_key_with_both_shapes_and_changes_nothing) {
  const torch::nn::Sequential saved(torch::nn::Linear(2, 3), torch::nn::Linear(3, 4));
  cadre::save_state(file_, saved);
  torch::nn::Sequential other(torch::nn::Linear(2, 3), torch::nn::Linear(5, 4), torch::nn::Linear(4, 1));
  const auto before = other->parameters()[0].clone();
  const std::string message = message_of<cadre::InvalidArgument>([&] { cadre::load_state(file_, other); });
  EXPECT_THAT(message, AllOf(HasSubstr(file_.string()), HasSubstr("\"1.weight\" has the shape [4, 3] in the file and"),
                             HasSubstr("[4, 5] in the model"), HasSubstr("\"2.weight\" [1, 4] of the model is missing"),
                             HasSubstr("\"2.bias\"")));
  EXPECT_TRUE(torch::equal(before, other->parameters()[0]));

  torch::nn::Sequential smaller(torch::nn::Linear(2, 3));
  EXPECT_THAT(message_of<cadre::InvalidArgument>([&] { cadre::load_state(file_, smaller); }),
              HasSubstr("\"1.weight\" [4, 3] of the file is unknown to the model"));
}

TEST_F(StateTest, file_of_another_kind_of_optimizer_is_refused_and_changes_nothing) {
  for (const OptimizerCase& saved : optimizer_cases()) {
    SmallNet model;
    const auto optimizer = saved.make(model->parameters());
    train_step(model, *optimizer);
    cadre::save_state(file_, model, *optimizer, 1);
    for (const OptimizerCase& other : optimizer_cases()) {
      if (other.kind == saved.kind) continue;
      SCOPED_TRACE(saved.name + " into " + other.name);
      SmallNet loaded;
      const auto loaded_optimizer = other.make(loaded->parameters());
      const auto before = values_of(loaded);
      EXPECT_THROW(cadre::load_state(file_, loaded, *loaded_optimizer), cadre::InvalidArgument);
      EXPECT_TRUE(equal_values(before, values_of(loaded)));
    }
  }
}

TEST_F(StateTest, optimizer_of_other_parameters_is_refused) {
  SmallNet model;
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  train_step(model, optimizer);
  cadre::save_state(file_, model, optimizer, 1);
  torch::optim::SGD fewer(model->fc->parameters(), 0.1);
  EXPECT_THAT(message_of<cadre::InvalidArgument>([&] { cadre::load_state(file_, model, fewer); }),
              HasSubstr("group 0 has 2 parameters, the file has 5"));
  auto parameters = model->parameters();
  std::swap(parameters[0], parameters[4]);
  torch::optim::SGD reordered(parameters, 0.1);
  EXPECT_THAT(
      message_of<cadre::InvalidArgument>([&] { cadre::load_state(file_, model, reordered); }),
      HasSubstr("parameter 0: \"momentum_buffer\" has the shape [2, 1, 3, 3] in the file, the parameter has [10]"));
}

TEST_F(StateTest, file_without_optimizer_is_refused_where_one_is_asked_for) {
  SmallNet model;
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  cadre::save_state(file_, model);
  EXPECT_THAT(message_of<cadre::InvalidArgument>([&] { cadre::load_state(file_, model, optimizer); }),
              HasSubstr("no state of an optimizer"));
}

TEST_F(StateTest, unknown_optimizer_is_refused_by_both) {
  SmallNet model;
  struct Own final : torch::optim::Optimizer {
    using Optimizer::Optimizer;
    torch::Tensor step(LossClosure) override { return {}; }
  };
  Own optimizer({torch::optim::OptimizerParamGroup(model->parameters())},
                std::make_unique<torch::optim::SGDOptions>(0.1));
  EXPECT_THAT(message_of<cadre::InvalidArgument>([&] { cadre::save_state(file_, model, optimizer, 1); }),
              HasSubstr("use one of libtorch's"));
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(StateTest, missing_file_and_unwritable_place_are_named) {
  SmallNet model;
  EXPECT_THAT(message_of<cadre::NotFound>([&] { cadre::load_state(directory_ / "nowhere.pt", model); }),
              HasSubstr("nowhere.pt"));
  EXPECT_THAT(message_of<cadre::StorageError>([&] { cadre::save_state(directory_ / "no/such/x.pt", model); }),
              HasSubstr("no/such/x.pt"));
}

TEST_F(StateTest, full_disk_is_an_error_that_says_so) {
  SmallNet model;
  EXPECT_THAT(message_of<cadre::StorageError>([&] { cadre::save_state("/dev/full", model); }),
              AllOf(HasSubstr("/dev/full"), HasSubstr("No space left")));
}

TEST_F(StateTest, tied_weights_stay_one_record) {
  const auto register_tied = [](torch::nn::Module& module, const torch::nn::Linear& layer) {
    module.register_module("layer", layer.ptr());
    module.register_parameter("again", layer->weight);
  };
  const torch::nn::Linear layer(100, 100);
  cadre::save_state(file_, layer);
  const auto single = std::filesystem::file_size(file_);
  torch::nn::Module tied;
  register_tied(tied, layer);
  cadre::save_state(file_, tied);
  EXPECT_LT(std::filesystem::file_size(file_), single + 1000);

  const torch::nn::Linear other(100, 100);
  torch::nn::Module loaded;
  register_tied(loaded, other);
  cadre::load_state(file_, loaded);
  EXPECT_TRUE(torch::equal(other->weight, layer->weight));
}

}  // namespace
