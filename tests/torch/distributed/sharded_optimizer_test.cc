// Optimizers whose state is divided among ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "cadre/torch/grad_scaler.h"
#include "cadre/torch/lr_scheduler.h"
#include "cadre/torch/save_dict.h"
#include "cadre/train_torch.h"
#include "ranks.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::train {
namespace {

using namespace test_support;
using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;
namespace optim = torch::optim;

struct NetImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return second(torch::tanh(first(x))); }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(6, 20));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(20, 3));
};
TORCH_MODULE(Net);

constexpr std::int64_t batch_size = 12;  // of all ranks

Net make_net() {
  torch::manual_seed(8);
  return Net();
}

// Returns this rank's loss of one step.
template <class Model>
torch::Tensor loss_of(Model& model, int step, int rank = 0, int ranks = 1) {
  torch::manual_seed(static_cast<std::uint64_t>(step));
  const torch::Tensor x = torch::randn({batch_size, 6});
  const torch::Tensor y = torch::randint(3, {batch_size}, torch::kLong);
  const auto own = torch::indexing::Slice(rank, torch::indexing::None, ranks);
  return torch::nn::functional::cross_entropy(model(x.index({own})), y.index({own}));
}

std::vector<torch::Tensor> values_of(const Net& net) {
  std::vector<torch::Tensor> values;
  for (const torch::Tensor& parameter : net->parameters()) values.push_back(parameter.detach().clone());
  return values;
}

void expect_equal(const std::vector<torch::Tensor>& got, const std::vector<torch::Tensor>& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_LE((got[i] - expected[i]).abs().max().item<double>(), tolerance) << i;
}

// Trains for the steps from `begin` to `end`, without `end`.
template <class Optimizer>
void train_steps(PreparedModel<NetImpl>& model, Optimizer& optimizer, int begin, int end, int rank, int ranks) {
  for (int step = begin; step < end; ++step) {
    optimizer.zero_grad();
    loss_of(model, step, rank, ranks).backward();
    optimizer.step();
  }
}

template <class Optimizer, class Options>
void expect_what_one_process_comes_to(const Options& options) {
  Net alone = make_net();
  Optimizer whole(alone->parameters(), options);
  for (int step = 0; step < 10; ++step) {
    whole.zero_grad();
    loss_of(alone, step).backward();
    whole.step();
  }
  const std::vector<torch::Tensor> expected = values_of(alone);
  for (const int ranks : {1, 2, 3, 6}) {  // there are four parameters
    run_ranks(ranks, [&](int rank) {
      Net net = make_net();
      auto model = prepare_model(net);
      auto optimizer = prepare_optimizer<Optimizer>(model.parameters(), options);
      train_steps(model, optimizer, 0, 10, rank, ranks);
      expect_equal(values_of(net), expected, 1e-6);

      Net other = make_net();
      auto same = prepare_model(other);
      Optimizer undivided(same.parameters(), options);
      train_steps(same, undivided, 0, 10, rank, ranks);
      expect_equal(values_of(net), values_of(other), 0);
    });
  }
}

TEST(ShardedOptimizer, ComesToWhatOneProcessComesTo) {
  expect_what_one_process_comes_to<optim::Adam>(optim::AdamOptions(0.05));
  expect_what_one_process_comes_to<optim::AdamW>(optim::AdamWOptions(0.05).amsgrad(true));
  expect_what_one_process_comes_to<optim::SGD>(optim::SGDOptions(0.1).momentum(0.9));
  expect_what_one_process_comes_to<optim::RMSprop>(optim::RMSpropOptions(0.01).momentum(0.5));
  expect_what_one_process_comes_to<optim::Adagrad>(optim::AdagradOptions(0.1));
}

TEST(ShardedOptimizer, EachRankKeepsThePartOfTheStateThatOthersDoNot) {
  run_ranks(2, [](int rank) {
    auto model = prepare_model(make_net());
    auto optimizer = prepare_optimizer<optim::Adam>(model.parameters(), optim::AdamOptions(0.1));
    train_steps(model, optimizer, 0, 1, rank, 2);
    std::int64_t own = 0;
    for (const torch::Tensor& parameter : optimizer.param_groups()[0].params()) own += parameter.numel();
    torch::Tensor all = torch::tensor(own);
    all_reduce(all);
    EXPECT_EQ(all.item<std::int64_t>(), 6 * 20 + 20 + 20 * 3 + 3);
    EXPECT_LE(own, 120) << "the largest parameter alone";
    EXPECT_EQ(optimizer.state().size(), optimizer.param_groups()[0].params().size());
  });
}

TEST(ShardedOptimizer, ParametersOfManySizesAndTypesAreExchanged) {
  run_ranks(3, [](int rank) {
    std::vector<torch::Tensor> parameters;
    torch::manual_seed(1);
    for (int i = 0; i < 20; ++i)
      parameters.push_back(
          torch::randn({i % 4, 1 + i * 7}, i % 3 == 0 ? torch::kDouble : torch::kFloat).requires_grad_());
    parameters.push_back(torch::randn({5, 3}).t().detach().requires_grad_());  // not contiguous
    parameters.push_back(torch::randn({3'000'000}).requires_grad_());          // more than half a bucket
    parameters.push_back(torch::randn({8'000'000}).requires_grad_());          // more than one bucket
    auto optimizer = prepare_optimizer<optim::SGD>(parameters, optim::SGDOptions(1));
    std::vector<torch::Tensor> expected;
    for (torch::Tensor& parameter : parameters) {
      expected.push_back(parameter.detach() - 2);
      parameter.mutable_grad() = torch::full_like(parameter, 2).detach();
    }
    optimizer.step();
    for (std::size_t i = 0; i < parameters.size(); ++i)
      EXPECT_TRUE(torch::equal(parameters[i].detach(), expected[i])) << rank << " " << i;
    optimizer.zero_grad();
    for (const torch::Tensor& parameter : parameters) EXPECT_FALSE(parameter.grad().defined()) << "also of other ranks";
  });
}

TEST(ShardedOptimizer, AnotherNumberOfRanksGoesOnFromItsFiles) {
  const TemporaryDirectory directory;
  Net alone = make_net();
  optim::AdamW whole(alone->parameters(), optim::AdamWOptions(0.05));
  for (int step = 0; step < 10; ++step) {
    whole.zero_grad();
    loss_of(alone, step).backward();
    whole.step();
  }
  const std::vector<torch::Tensor> expected = values_of(alone);
  for (const int before : {1, 3, 4}) {
    const fs::path checkpoint = directory / std::to_string(before);
    fs::create_directory(checkpoint);
    run_ranks(before, [&](int rank) {
      auto model = prepare_model(make_net());
      auto optimizer = prepare_optimizer<optim::AdamW>(model.parameters(), optim::AdamWOptions(0.05));
      train_steps(model, optimizer, 0, 5, rank, before);
      optimizer.save_shard(checkpoint);
      if (rank == 0) save_state(checkpoint / "model.pt", model.module());
    });
    for (const int after : {1, 2, 4}) {
      run_ranks(after, [&](int rank) {
        Net net;
        load_state(checkpoint / "model.pt", net);
        auto model = prepare_model(net);
        auto optimizer = prepare_optimizer<optim::AdamW>(model.parameters(), optim::AdamWOptions(7));
        optimizer.load_shards(checkpoint);
        train_steps(model, optimizer, 5, 10, rank, after);
        expect_equal(values_of(net), expected, 1e-6);
      });
    }
  }
}

TEST(ShardedOptimizer, GroupsKeepTheirOptions) {
  const TemporaryDirectory directory;
  const auto groups_of = [](Net& net) {
    std::vector<optim::OptimizerParamGroup> groups;
    groups.emplace_back(net->first->parameters());
    groups.emplace_back(net->second->parameters(), std::make_unique<optim::SGDOptions>(0.5));
    return groups;
  };
  run_ranks(3, [&](int) {
    Net net = make_net();
    auto optimizer = prepare_optimizer<optim::SGD>(groups_of(net), optim::SGDOptions(0.1).momentum(0.9));
    optim::OptimizerOptions& second = optimizer.param_groups()[1].options();
    EXPECT_EQ(second.get_lr(), 0.5);
    second.set_lr(0.25);
    optimizer.save_shard(directory.path(), "sgd");
    auto loaded = prepare_optimizer<optim::SGD>(groups_of(net), optim::SGDOptions(3));
    torch::Tensor all_have_saved = torch::zeros(1);
    all_reduce(all_have_saved);
    loaded.load_shards(directory.path(), "sgd");
    EXPECT_EQ(loaded.param_groups()[0].options().get_lr(), 0.1);
    EXPECT_EQ(loaded.param_groups()[1].options().get_lr(), 0.25);
  });
}

TEST(ShardedOptimizer, SchedulesAndGradientScalersAreUsedWithIt) {
  run_ranks(2, [](int rank) {
    auto model = prepare_model(make_net());
    auto optimizer = prepare_optimizer<optim::Adam>(model.parameters(), optim::AdamOptions(0.1));
    cadre::optim::LRScheduler scheduler(optimizer, cadre::optim::ExponentialLR{.gamma = 0.5});
    scheduler.step();
    EXPECT_EQ(optimizer.param_groups()[0].options().get_lr(), 0.05);

    GradScaler scaler({.init_scale = 4});
    scaler.scale(loss_of(model, 0, rank, 2)).backward();
    // Makes a gradient infinite on both ranks, as averaging does, although only one rank steps its parameter.
    model.parameters()[0].mutable_grad().fill_(std::numeric_limits<float>::infinity());
    EXPECT_FALSE(scaler.step(optimizer)) << "on either rank";
    scaler.update();
    EXPECT_EQ(scaler.get_scale(), 2);
    optimizer.zero_grad();
    scaler.scale(loss_of(model, 1, rank, 2)).backward();
    EXPECT_TRUE(scaler.step(optimizer));
  });
}

TEST(ShardedOptimizer, OneFileIsNotItsState) {
  const TemporaryDirectory directory;
  run_ranks(2, [&](int) {
    auto model = prepare_model(make_net());
    auto optimizer = prepare_optimizer<optim::Adam>(model.parameters(), optim::AdamOptions(0.1));
    const auto fault = [&](const std::function<void()>& act) { return message_of<InvalidArgument>(act); };
    EXPECT_THAT(fault([&] { save_state(directory / "s.pt", model.module(), optimizer, 1); }), HasSubstr("save_shard"));
    EXPECT_THAT(fault([&] { save_dict(directory / "s.pt", {{"optimizer", optimizer}}); }), HasSubstr("save_shard"));
    EXPECT_FALSE(fs::exists(directory / "s.pt"));
  });
  auto model = prepare_model(make_net());  // one process alone has the whole state
  auto optimizer = prepare_optimizer<optim::Adam>(model.parameters(), optim::AdamOptions(0.1));
  save_dict(directory / "s.pt", {{"optimizer", optimizer}});
  load_dict(directory / "s.pt", {{"optimizer", optimizer}});
}

TEST(ShardedOptimizer, GoesOnFromTheStateOfAWholeOptimizer) {
  const TemporaryDirectory directory;
  std::vector<torch::Tensor> expected;
  {
    auto model = prepare_model(make_net());
    optim::Adam whole(model.parameters(), optim::AdamOptions(0.1));
    train_steps(model, whole, 0, 3, 0, 1);
    save_state(directory / "s.pt", model.module(), whole, 3);
    train_steps(model, whole, 3, 6, 0, 1);
    for (const torch::Tensor& parameter : model.parameters()) expected.push_back(parameter.detach().clone());
    torch::nn::Linear other(6, 20);
    optim::Adam smaller(other->parameters(), optim::AdamOptions(0.1));
    save_dict(directory / "smaller.pt", {{"optimizer", smaller}});
  }
  for (const int ranks : {2, 3}) {
    run_ranks(ranks, [&](int rank) {
      auto model = prepare_model(make_net());
      auto optimizer = prepare_optimizer<optim::Adam>(model.parameters(), optim::AdamOptions(0.3));
      EXPECT_THAT(message_of<InvalidArgument>([&] { load_dict(directory / "smaller.pt", {{"optimizer", optimizer}}); }),
                  HasSubstr("parameters, the file has 2"));
      EXPECT_EQ(load_state(directory / "s.pt", model.module(), optimizer), 3);
      EXPECT_EQ(optimizer.param_groups()[0].options().get_lr(), 0.1);
      train_steps(model, optimizer, 3, 6, rank, ranks);
      const std::vector<torch::Tensor> parameters = model.parameters();
      for (std::size_t i = 0; i < parameters.size(); ++i)
        EXPECT_TRUE(torch::allclose(parameters[i], expected[i], 1e-5, 1e-6)) << i;
    });
  }
}

TEST(ShardedOptimizer, FilesThatAreMissingOrDoNotBelongTogetherAreNamed) {
  const TemporaryDirectory directory;
  const auto save = [&](int ranks, const std::string& name, int steps = 1) {
    run_ranks(ranks, [&](int rank) {
      auto model = prepare_model(make_net());
      auto optimizer = prepare_optimizer<optim::Adam>(model.parameters(), optim::AdamOptions(0.1));
      train_steps(model, optimizer, 0, steps, rank, ranks);
      optimizer.save_shard(directory.path(), name);
    });
  };
  Net net = make_net();
  auto optimizer = prepare_optimizer<optim::Adam>(net->parameters(), optim::AdamOptions(0.3));
  const auto fault = [&](const std::string& name) {
    const std::string message = message_of<Error>([&] { optimizer.load_shards(directory.path(), name); });
    EXPECT_EQ(optimizer.param_groups()[0].options().get_lr(), 0.3);
    EXPECT_TRUE(optimizer.state().empty());
    return message;
  };
  EXPECT_THAT(fault("optimizer"), HasSubstr("there is nothing of the state of an optimizer, \"optimizer\""));
  save(3, "a");
  EXPECT_THAT(fault("a_0"), HasSubstr("there is nothing of")) << "the beginning of a name is none";
  fs::copy_file(directory / "a_0_of_3.pt", directory / "b_0_of_0.pt");
  EXPECT_THAT(fault("b"), HasSubstr("there is nothing of")) << "no group has 0 ranks";
  fs::copy_file(directory / "a_1_of_3.pt", directory / "kept");
  fs::remove(directory / "a_1_of_3.pt");
  EXPECT_THAT(fault("a"), HasSubstr("a_1_of_3.pt is missing"));
  fs::copy_file(directory / "a_0_of_3.pt", directory / "a_1_of_3.pt");
  EXPECT_THAT(fault("a"),
              AllOf(HasSubstr("a_1_of_3.pt"), HasSubstr("it does not belong to"), HasSubstr("a_0_of_3.pt")));
  fs::remove(directory / "a_1_of_3.pt");
  fs::rename(directory / "kept", directory / "a_1_of_3.pt");
  fs::copy_file(directory / "a_0_of_3.pt", directory / "a_0_of_2.pt");
  EXPECT_THAT(fault("a"), HasSubstr("files of different numbers of ranks"));
  fs::remove(directory / "a_0_of_2.pt");
  save(3, "later", 2);
  fs::copy_file(directory / "a_2_of_3.pt", directory / "later_2_of_3.pt", fs::copy_options::overwrite_existing);
  EXPECT_THAT(fault("later"), AllOf(HasSubstr("later_2_of_3.pt"), HasSubstr("after 1 steps, and they after 2")));
  {
    torch::nn::Linear other(6, 20);
    auto smaller = prepare_optimizer<optim::Adam>(other->parameters(), optim::AdamOptions(0.3));
    EXPECT_THAT(message_of<InvalidArgument>([&] { smaller.load_shards(directory.path(), "a"); }),
                HasSubstr("it has parameters that group 0 of the optimizer, with 2, has not"));
    auto sgd = prepare_optimizer<optim::SGD>(net->parameters(), optim::SGDOptions(0.3));
    EXPECT_THROW(sgd.load_shards(directory.path(), "a"), InvalidArgument);
  }
  fs::resize_file(directory / "a_2_of_3.pt", 100);
  EXPECT_THAT(fault("a"), HasSubstr("a_2_of_3.pt"));
  EXPECT_THAT(
      message_of<InvalidArgument>([&] {
        prepare_optimizer<optim::Adam>({net->first->weight, net->first->weight, torch::Tensor()},
                                       optim::AdamOptions(0.1));
      }),
      AllOf(HasSubstr("parameter 1 of group 0 is there already"), HasSubstr("parameter 2 of group 0 is undefined")));
}

}  // namespace
}  // namespace cadre::train
