// Steps of schedules that throw; what rates come to is compared with Python's in tests/compat/torch_schedules_test.py.
#include "cadre/torch/lr_scheduler.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>

#include "cadre/error.h"

namespace cadre {
namespace {

double rate_of(torch::optim::Optimizer& optimizer) { return optimizer.param_groups().front().options().get_lr(); }

// Parts before the one that threw had taken the step, and epochs were counted.
TEST(LRScheduler, AStepThatThrowsChangesNothing) {
  bool fails = false;
  const optim::LambdaLR faulty{.lr_lambda = [&](std::int64_t epoch) {
    if (fails) throw std::runtime_error("there is no rate");
    return 1.0 / static_cast<double>(epoch + 1);
  }};
  const optim::ExponentialLR sound{.gamma = 0.5};
  for (const optim::Schedule& schedule :
       {optim::Schedule(faulty), optim::Schedule(optim::ChainedScheduler{.schedulers = {sound, faulty}}),
        optim::Schedule(optim::SequentialLR{.schedulers = {sound, faulty}, .milestones = {2}})}) {
    torch::nn::Linear model(1, 1);
    torch::optim::SGD sgd(model->parameters(), torch::optim::SGDOptions(0.1));
    optim::LRScheduler scheduler(sgd, schedule);
    scheduler.step();
    for (int step = 0; step < 2; ++step) {
      const Value before = scheduler.state_dict();
      const double rate = rate_of(sgd);
      fails = true;
      EXPECT_THROW(scheduler.step(), std::runtime_error);
      fails = false;
      EXPECT_EQ(Value(scheduler.state_dict()), before);
      EXPECT_EQ(rate_of(sgd), rate);
      scheduler.step();
    }
    EXPECT_EQ(scheduler.last_epoch(), 3);
  }
}

TEST(LRScheduler, AChainStaysWhereItsOneCycleIsOver) {
  torch::nn::Linear model(1, 1);
  torch::optim::SGD sgd(model->parameters(), torch::optim::SGDOptions(0.1));
  optim::LRScheduler scheduler(
      sgd, optim::ChainedScheduler{.schedulers = {optim::ExponentialLR{.gamma = 0.5},
                                                  optim::OneCycleLR{.max_lr = {0.3}, .total_steps = 2}}});
  for (int step = 0; step < 2; ++step) scheduler.step();
  const Value before = scheduler.state_dict();
  EXPECT_THROW(scheduler.step(), InvalidArgument);
  EXPECT_EQ(Value(scheduler.state_dict()), before);
}

}  // namespace
}  // namespace cadre
