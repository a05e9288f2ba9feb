// Files with whatever a training consists of.
#include "cadre/torch/save_dict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "small_net.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"
#include "torch/pickle_value.h"
#include "torch/pt_file.h"

namespace cadre {
namespace {

using test_support::message_of;
using test_support::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::HasSubstr;

class SaveDict : public ::testing::Test {
 protected:
  TemporaryDirectory folder_;
  std::filesystem::path file_ = folder_.path() / "state.pt";
};

torch::optim::SGD sgd_of(const SmallNet& model) {
  return torch::optim::SGD(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
}

// One training of two models goes on in other objects as in those that were saved.
TEST_F(SaveDict, EverythingGoesOnAsItWas) {
  SmallNet first;
  SmallNet second;
  torch::optim::SGD sgd = sgd_of(first);
  torch::optim::Adam adam(second->parameters(), torch::optim::AdamOptions(0.01));
  optim::LRScheduler scheduler(sgd, optim::OneCycleLR{.max_lr = {0.3}, .total_steps = 20});
  optim::ReduceLROnPlateau plateau(adam, {.factor = 0.5, .patience = 0});
  const auto train = [](SmallNet& a, auto& sgd_a, auto& schedule, SmallNet& b, auto& adam_b, auto& reduced) {
    const torch::NoGradGuard no_grad;
    {
      const torch::AutoGradMode with_grad(true);
      train_step(a, sgd_a);
      train_step(b, adam_b);
    }
    schedule.step();
    reduced.step(1.0);
    a->parameters().front().add_(torch::rand({}));
  };
  for (int i = 0; i < 3; ++i) train(first, sgd, scheduler, second, adam, plateau);
  save_dict(file_, {{"first", first},
                    {"second", second},
                    {"sgd", sgd},
                    {"adam", adam},
                    {"scheduler", scheduler},
                    {"plateau", plateau},
                    {"random", RandomStates()},
                    {"progress", Dict{{"epoch", 3}, {"name", "text"}}}});
  for (int i = 0; i < 4; ++i) train(first, sgd, scheduler, second, adam, plateau);

  SmallNet third;
  SmallNet fourth;
  torch::optim::SGD other_sgd = sgd_of(third);
  torch::optim::Adam other_adam(fourth->parameters(), torch::optim::AdamOptions(0.01));
  optim::LRScheduler other_scheduler(other_sgd, optim::OneCycleLR{.max_lr = {0.3}, .total_steps = 20});
  optim::ReduceLROnPlateau other_plateau(other_adam, {.factor = 0.5, .patience = 0});
  Dict progress;
  load_dict(file_, {{"first", third},
                    {"second", fourth},
                    {"sgd", other_sgd},
                    {"adam", other_adam},
                    {"scheduler", other_scheduler},
                    {"plateau", other_plateau},
                    {"random", RandomStates()},
                    {"progress", progress}});
  for (int i = 0; i < 4; ++i) train(third, other_sgd, other_scheduler, fourth, other_adam, other_plateau);
  EXPECT_TRUE(equal_values(values_of(first), values_of(third)));
  EXPECT_TRUE(equal_values(values_of(second), values_of(fourth)));
  EXPECT_EQ(other_scheduler.last_epoch(), 7);
  EXPECT_EQ(other_scheduler.get_last_lr(), scheduler.get_last_lr());
  EXPECT_EQ(other_plateau.get_last_lr(), plateau.get_last_lr());
  EXPECT_EQ(Value(progress), Value(Dict{{"epoch", 3}, {"name", "text"}}));
}

TEST_F(SaveDict, ValuesOfAllKindsComeBack) {
  save_dict(file_, {{"flag", true},
                    {"number", std::numeric_limits<std::int64_t>::min()},
                    {"rate", 0.1},
                    {"text", "äöü"},
                    {"numbers", Value(list(1, 2, 3))},
                    {"nested", SavedItems{{"tensor", torch::ones({2, 2})}, {"deep", SavedItems{{"x", 1}}}}}});
  bool flag = false;
  std::int64_t number = 0;
  float rate = 0;
  std::string text;
  std::vector<int> numbers;
  torch::Tensor tensor;
  int x = 0;
  load_dict(file_, {{"rate", rate},
                    {"flag", flag},
                    {"number", number},
                    {"text", text},
                    {"numbers", numbers},
                    {"nested", LoadedItems{{"tensor", tensor}, {"deep", LoadedItems{{"x", x}}}}}});
  EXPECT_TRUE(flag);
  EXPECT_EQ(number, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(rate, 0.1F);
  EXPECT_EQ(text, "äöü");
  EXPECT_EQ(numbers, (std::vector{1, 2, 3}));
  EXPECT_TRUE(torch::equal(tensor, torch::ones({2, 2})));
  EXPECT_EQ(x, 1);
}

// A data loader, for one: an object with a state of values.
struct Counter {
  std::int64_t count = 0;
  Dict state_dict() const { return {{"count", count}}; }
  void load_state_dict(const Dict& state) { count = Config(Value(state)).get<std::int64_t>("count"); }
};

TEST_F(SaveDict, ATrainingStateWritesWhatItReads) {
  struct Training {
    SmallNet model = {};
    torch::optim::SGD optimizer = sgd_of(model);
    optim::LRScheduler scheduler = {optimizer, optim::OneCycleLR{.max_lr = {0.3}, .total_steps = 20}};
    AveragedWeights averages = AveragedWeights(model, {.decay = 0.5});
    GradScaler scaler;
    Counter counter = {};
    torch::Tensor tensor = torch::rand({2});
    std::uint64_t epoch = 0;
    std::string name = {};
    std::vector<std::vector<float>> losses = {};
    Value position = {};
    TrainingState state = TrainingState({{"model", model},
                                         {"optimizer", optimizer},
                                         {"scheduler", scheduler},
                                         {"averages", averages},
                                         {"random", RandomStates()},
                                         {"progress", LoadedItems{{"scaler", scaler}, {"counter", counter}}},
                                         {"tensor", tensor},
                                         {"epoch", epoch},
                                         {"name", name},
                                         {"losses", losses},
                                         {"position", position}});
  };
  Training first;
  train_step(first.model, first.optimizer);
  first.scheduler.step();
  first.averages.update_parameters(first.model);
  first.counter.count = 5;
  first.epoch = 3;  // after the state was made: it is written as it is then
  first.name = "text";
  first.losses = {{0.5F, 0.25F}, {}};
  first.position = {{"taken", 7}};
  first.state.save(file_);
  const torch::Tensor drawn = torch::rand({3});

  Training second;
  second.state.load(file_);
  EXPECT_TRUE(torch::equal(torch::rand({3}), drawn));
  EXPECT_TRUE(equal_values(values_of(second.model), values_of(first.model)));
  EXPECT_TRUE(torch::equal(second.tensor, first.tensor));
  EXPECT_EQ(second.scheduler.get_last_lr(), first.scheduler.get_last_lr());
  EXPECT_EQ(second.averages.n_averaged(), 1);
  EXPECT_EQ(std::tuple(second.counter.count, second.epoch, second.name, second.losses),
            std::tuple(5, std::uint64_t{3}, "text", first.losses));
  EXPECT_EQ(second.position, first.position);
  train_step(first.model, first.optimizer);
  train_step(second.model, second.optimizer);
  EXPECT_TRUE(equal_values(values_of(second.model), values_of(first.model)));  // with the same momentum
}

// They were the model's own weights in the file.
TEST_F(SaveDict, AveragesThatTheModelHasAreNeitherSavedNorLoaded) {
  SmallNet model;
  AveragedWeights averages(model);
  averages.update_parameters(model);
  save_dict(file_, {{"averages", averages}});
  torch::optim::SGD sgd = sgd_of(model);
  train_step(model, sgd);
  averages.swap(model);
  const auto measured = values_of(model);
  EXPECT_THAT(message_of<InvalidArgument>([&] { save_dict(file_, {{"ema", SavedItems{{"averages", averages}}}}); }),
              AllOf(HasSubstr("\"ema/averages\" cannot be saved"), HasSubstr("call swap() again")));
  EXPECT_THAT(message_of<InvalidArgument>([&] { load_dict(file_, {{"averages", averages}}); }),
              AllOf(HasSubstr("\"averages\""), HasSubstr("call swap() again")));
  averages.swap(model);
  load_dict(file_, {{"averages", averages}});  // the former file is still there
  averages.copy_to(model);
  EXPECT_TRUE(equal_values(values_of(model), measured));
}

// The state of an LBFGS of three numbers as Python has it, after two iterations.
struct LbfgsFile {
  std::int64_t history_size = 4;
  std::size_t directions = 1;
  pt::Value h_diag = torch::ones({});
  pt::Value t = 1.0;

  pt::Value content() const {
    const auto list = [](std::vector<pt::Value> items) {
      return pt::make_container(pt::Container::Kind::list, std::move(items));
    };
    const torch::Tensor row = torch::full({3}, 0.5);
    pt::DictBuilder state;
    state.add("func_evals", std::int64_t{3});
    state.add("n_iter", std::int64_t{2});
    state.add("d", row);
    state.add("t", t);
    state.add("old_dirs", list(std::vector<pt::Value>(directions, row)));
    state.add("old_stps", list(std::vector<pt::Value>(directions, row)));
    state.add("ro", list(std::vector<pt::Value>(directions, torch::ones({}))));
    state.add("H_diag", h_diag);
    state.add("prev_flat_grad", row);
    state.add("prev_loss", 0.25);
    pt::DictBuilder states;
    states.add(std::int64_t{0}, state.take());
    pt::DictBuilder group;
    group.add("lr", 0.5);
    group.add("max_iter", std::int64_t{1});
    group.add("max_eval", std::int64_t{2});
    group.add("tolerance_grad", 1e-7);
    group.add("tolerance_change", 1e-9);
    group.add("history_size", history_size);
    group.add("line_search_fn", pt::Value());
    group.add("params", list({std::int64_t{0}, std::int64_t{1}}));
    pt::DictBuilder optimizer;
    optimizer.add("state", states.take());
    optimizer.add("param_groups", list({group.take()}));
    pt::DictBuilder all;
    all.add("optimizer", optimizer.take());
    return all.take();
  }
};

TEST_F(SaveDict, AStateOfLbfgsThatIsLongerThanItsHistoryIsRefused) {
  torch::nn::Linear model(2, 1);
  torch::optim::LBFGS lbfgs(model->parameters());
  const auto fault = [&](const LbfgsFile& saved) {
    pt::write_file(file_, saved.content());
    return message_of<InvalidArgument>([&] { load_dict(file_, {{"optimizer", lbfgs}}); });
  };
  EXPECT_THAT(fault({.history_size = 2, .directions = 3}), HasSubstr("at most 2 directions"));  // wrote beyond a buffer
  EXPECT_THAT(fault({.history_size = 0, .directions = 0}), HasSubstr("\"history_size\" is 0"));
  EXPECT_THAT(fault({.h_diag = torch::ones({3})}), HasSubstr("is not one of 3 numbers"));
  EXPECT_THAT(fault({.h_diag = pt::Value()}), HasSubstr("is not one of 3 numbers"));
  EXPECT_THAT(fault({.t = torch::ones({2})}), HasSubstr("\"t\" is a tensor"));
  EXPECT_TRUE(lbfgs.state().empty());
}

// They were refused: Python has a tensor where a step's length was computed, and a number where nothing was yet.
TEST_F(SaveDict, AStateOfPythonsLbfgsMayHaveATensorForANumberAndTheOtherWayRound) {
  const auto step_after = [&](const LbfgsFile& saved) {
    torch::manual_seed(1);
    torch::nn::Linear model(2, 1);
    torch::optim::LBFGS lbfgs(model->parameters());
    pt::write_file(file_, saved.content());
    load_dict(file_, {{"optimizer", lbfgs}});
    lbfgs.step([&] {
      lbfgs.zero_grad();
      torch::Tensor loss = model(torch::ones({1, 2})).square().sum();
      loss.backward();
      return loss;
    });
    return model->weight.detach().clone();
  };
  const torch::Tensor expected = step_after({.h_diag = torch::ones({}), .t = 0.5});
  EXPECT_TRUE(torch::equal(step_after({.h_diag = std::int64_t{1}, .t = torch::full({}, 0.5)}), expected));
}

TEST_F(SaveDict, ATensorThatIsThereKeepsItsMemory) {
  save_dict(file_, {{"average", torch::full({3}, 2.0)}});
  torch::Tensor average = torch::zeros(3, torch::kDouble);
  const void* const memory = average.data_ptr();
  load_dict(file_, {{"average", average}});
  EXPECT_EQ(average.data_ptr(), memory);
  EXPECT_EQ(average.scalar_type(), torch::kDouble);
  EXPECT_EQ(average.sum().item<double>(), 6);
}

// All faults are named, and nothing is loaded.
TEST_F(SaveDict, WhatDoesNotFitIsNamedAndChangesNothing) {
  SmallNet model;
  torch::optim::SGD sgd = sgd_of(model);
  optim::LRScheduler scheduler(sgd, optim::StepLR{.step_size = 2});
  save_dict(file_, {{"model", torch::nn::Linear(2, 3)},
                    {"sgd", sgd},
                    {"scheduler", scheduler},
                    {"epoch", "three"},
                    {"tensor", torch::ones(4)},
                    {"random", 5}});
  torch::optim::Adam adam(model->parameters(), torch::optim::AdamOptions(0.01));
  optim::LRScheduler other(adam, optim::ExponentialLR{.gamma = 0.5});
  const auto before = values_of(model);
  const torch::Tensor generator = at::detail::getDefaultCPUGenerator().get_state().clone();
  std::int64_t epoch = 7;
  torch::Tensor tensor = torch::zeros(3);
  const std::string message = message_of<InvalidArgument>([&] {
    load_dict(file_, {{"model", model},
                      {"sgd", adam},
                      {"scheduler", other},
                      {"epoch", epoch},
                      {"tensor", tensor},
                      {"random", RandomStates()},
                      {"missing", epoch}});
  });
  EXPECT_THAT(message, AllOf(HasSubstr(file_.string()), HasSubstr("model: \"conv.weight\""),
                             HasSubstr("sgd: Adam group 0"), HasSubstr("no state of an ExponentialLR"),
                             HasSubstr("\"epoch\": "), HasSubstr("the shape [4] in the file and [3]"),
                             HasSubstr("\"random\": these are no states"), HasSubstr("there is no \"missing\"")));
  EXPECT_TRUE(equal_values(before, values_of(model)));
  EXPECT_EQ(other.last_epoch(), 0);
  EXPECT_EQ(epoch, 7);
  EXPECT_EQ(tensor.sum().item<double>(), 0);
  EXPECT_TRUE(torch::equal(generator, at::detail::getDefaultCPUGenerator().get_state()));
}

TEST_F(SaveDict, WhatCannotBeSavedIsRefused) {
  EXPECT_THAT(message_of<InvalidArgument>([&] { save_dict(file_, {{"a", SavedItems{{"b", 1}, {"b", 2}}}}); }),
              HasSubstr("\"a/b\" is to be saved twice"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { save_dict(file_, {{"a", Value(Reference{"checkpoint", "x"})}}); }),
              HasSubstr("a reference cannot be saved"));
  torch::Tensor numbers = torch::ones(4);
  torch::Tensor bits = numbers.view(torch::kInt);  // would be read as floats
  EXPECT_THAT(message_of<InvalidArgument>([&] { save_dict(file_, {{"numbers", numbers}, {"bits", bits}}); }),
              HasSubstr("types Float and Int that share their memory cannot be saved together"));
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(SaveDict, AStateOfARandomGeneratorOfAnotherKindIsRefused) {
  save_dict(file_, {{"random", SavedItems{{"cpu", torch::zeros(3, torch::kByte)}, {"cuda", Value(List())}}}});
  EXPECT_THAT(message_of<InvalidArgument>([&] { load_dict(file_, {{"random", RandomStates()}}); }),
              HasSubstr("has 3 bytes, and its generator"));
}

// A schedule that is restored goes on with its rates; one of libtorch does not.
TEST(LRScheduler, OneOfTheStateGoesOnFromIt) {
  SmallNet model;
  torch::optim::SGD sgd = sgd_of(model);
  optim::LRScheduler scheduler(sgd, optim::StepLR{.step_size = 2, .gamma = 0.5});
  for (int i = 0; i < 3; ++i) scheduler.step();
  const Dict state = scheduler.state_dict();
  torch::optim::SGD again = sgd_of(model);
  again.param_groups().front().options().set_lr(scheduler.get_last_lr().front());
  optim::LRScheduler other(again, optim::StepLR{.step_size = 5});
  other.load_state_dict(state);
  scheduler.step();
  other.step();
  EXPECT_EQ(other.get_last_lr(), scheduler.get_last_lr());
  EXPECT_EQ(other.get_last_lr().front(), 0.1 * 0.5 * 0.5);
}

// Python divides by zero here.
TEST(LRScheduler, APhaseOfOneCycleLRWithoutStepsHasTheRateOfItsEnd) {
  SmallNet model;
  torch::optim::SGD sgd = sgd_of(model);
  const optim::LRScheduler falls(sgd, optim::OneCycleLR{.max_lr = {0.5}, .total_steps = 4, .pct_start = 0.25});
  EXPECT_EQ(falls.get_last_lr(), std::vector<double>{0.5});
  EXPECT_EQ(static_cast<torch::optim::SGDOptions&>(sgd.param_groups().front().options()).momentum(), 0.85);
  optim::LRScheduler rises(sgd, optim::OneCycleLR{.max_lr = {0.5}, .total_steps = 2, .pct_start = 1});
  rises.step();
  EXPECT_EQ(rises.get_last_lr(), std::vector<double>{0.5});
  rises.step();
  EXPECT_DOUBLE_EQ(rises.get_last_lr().front(), 0.5 / 25 / 1e4);
}

// Numbers of a file may be any: a step by one of them must not end the program.
TEST(LRScheduler, AStateWithNumbersOfNoScheduleIsRefused) {
  SmallNet model;
  const auto refuses = [&](optim::Schedule schedule, const std::string& name, Value value, const char* why) {
    torch::optim::SGD sgd = sgd_of(model);
    optim::LRScheduler scheduler(sgd, std::move(schedule));
    Dict state = scheduler.state_dict();
    for (auto& [key, entry] : state) {
      if (key == name) entry = value;
    }
    EXPECT_THAT(message_of<InvalidArgument>([&] { scheduler.load_state_dict(state); }), HasSubstr(why)) << name;
    scheduler.step();
  };
  refuses(optim::StepLR{}, "step_size", 0, "step_size: it is 0");
  refuses(optim::StepLR{}, "last_epoch", std::numeric_limits<std::int64_t>::max(), "last_epoch is");
  refuses(optim::CosineAnnealingLR{.T_max = 3}, "T_max", 0, "T_max: it is 0");
  refuses(optim::CosineAnnealingWarmRestarts{.T_0 = 3}, "T_i", 0, "T_i is 0");
  refuses(optim::OneCycleLR{.max_lr = {1}, .total_steps = 5}, "_schedule_phases", List(), "it has no phases");
  refuses(optim::OneCycleLR{.max_lr = {1}, .total_steps = 5}, "_schedule_phases", list(1), "the state");
  refuses(optim::StepLR{}, "base_lrs", list(1, 2), "base_lrs: it is [1, 2], expected a list of 1 numbers");
  refuses(optim::StepLR{}, "gamma", "text", "gamma: it is \"text\", expected a number");
}

TEST(LRScheduler, AStateThatDoesNotFitChangesNothing) {
  SmallNet model;
  torch::optim::SGD sgd = sgd_of(model);
  optim::LRScheduler scheduler(
      sgd, optim::SequentialLR{.schedulers = {optim::LinearLR{}, optim::StepLR{}}, .milestones = {3}});
  const Dict before = scheduler.state_dict();
  Dict state = before;
  for (auto& [name, value] : state) {
    if (name == "_milestones") value = list(1, 2, 3);
  }
  EXPECT_THAT(message_of<InvalidArgument>([&] { scheduler.load_state_dict(state); }),
              HasSubstr("3 milestones for 2 schedules"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { scheduler.load_state_dict({}); }),
              AllOf(HasSubstr("last_epoch: it is missing"), HasSubstr("_schedulers: it is missing")));
  EXPECT_EQ(Value(scheduler.state_dict()), Value(before));
}

}  // namespace
}  // namespace cadre
