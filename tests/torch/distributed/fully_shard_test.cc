// Models whose parameters are divided among ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "cadre/torch/grad_scaler.h"
#include "cadre/torch/save_dict.h"
#include "cadre/train_torch.h"
#include "ranks.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"
#include "torch/pickle_value.h"
#include "torch/pt_file.h"

namespace cadre::train {
namespace {

using namespace test_support;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using torch::Tensor;
namespace fs = std::filesystem;
namespace nn = torch::nn;
namespace optim = torch::optim;

constexpr std::int64_t words = 11;
constexpr std::int64_t width = 8;

// A network of many kinds of operations: attention, convolution, normalisation, recurrence.
struct BlockImpl : nn::Module {
  Tensor forward(const Tensor& x) {
    const Tensor attended = norm(x + std::get<0>(attention(x, x, x)));
    return attended + torch::gelu(convolution(attended.permute({1, 2, 0}))).permute({2, 0, 1});
  }
  nn::MultiheadAttention attention = register_module("attention", nn::MultiheadAttention(width, 2));
  nn::LayerNorm norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({width})));
  nn::Conv1d convolution = register_module("convolution", nn::Conv1d(nn::Conv1dOptions(width, width, 3).padding(1)));
};
TORCH_MODULE(Block);

struct NetImpl : nn::Module {
  // Takes [length, batch], returns scores of the words, [length, batch, words].
  Tensor forward(const Tensor& text) {
    Tensor x = embedding(text);
    for (const auto& block : *blocks) x = block->as<BlockImpl>()->forward(x);
    x = std::get<0>(recurrence(x));
    return torch::nn::functional::linear(x, embedding->weight) + scale;  // the weight is used twice
  }
  nn::Embedding embedding = register_module("embedding", nn::Embedding(words, width));
  nn::ModuleList blocks = register_module("blocks", nn::ModuleList(Block(), Block(), Block()));
  nn::LSTM recurrence = register_module("recurrence", nn::LSTM(width, width));
  Tensor scale = register_parameter("scale", torch::ones({}));
};
TORCH_MODULE(Net);

Net make_net() {
  torch::manual_seed(8);
  return Net();
}

FullyShardedModel<NetImpl> divided(const Net& net, std::int64_t most_collected = 2) {
  return fully_shard(net, modules_of<BlockImpl>(), {.most_collected = most_collected});
}

// Returns this rank's loss of one step.
template <class Model>
Tensor loss_of(Model& model, int step, int rank = 0, int ranks = 1) {
  torch::manual_seed(static_cast<std::uint64_t>(step));
  const Tensor text = torch::randint(words, {5, 12}, torch::kLong);
  const Tensor own = text.index({torch::indexing::Slice(), torch::indexing::Slice(rank, torch::indexing::None, ranks)});
  return nn::functional::cross_entropy(model.forward(own).flatten(0, 1), own.flatten());
}

template <class Model, class Optimizer>
void train_steps(Model& model, Optimizer& optimizer, int begin, int end, int rank = 0, int ranks = 1) {
  for (int step = begin; step < end; ++step) {
    optimizer.zero_grad();
    loss_of(model, step, rank, ranks).backward();
    optimizer.step();
  }
}

std::vector<Tensor> values_of(const nn::Module& net) {
  std::vector<Tensor> values;
  for (const Tensor& parameter : net.parameters()) values.push_back(parameter.detach().clone());
  return values;
}

std::vector<Tensor> whole_values_of(FullyShardedModel<NetImpl>& model) {
  const auto whole = model.whole();
  return values_of(model.module());
}

void expect_equal(const std::vector<Tensor>& got, const std::vector<Tensor>& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_LE((got[i] - expected[i]).abs().max().item<double>(), tolerance) << i;
}

template <class Optimizer, class Options>
void expect_what_one_process_comes_to(const Options& options) {
  Net alone = make_net();
  Optimizer whole(alone->parameters(), options);
  train_steps(*alone, whole, 0, 10);
  const std::vector<Tensor> expected = values_of(*alone);
  for (const int ranks : {1, 2, 3, 4}) {
    run_ranks(ranks, [&](int rank) {
      auto model = divided(make_net(), 1 + ranks % 3);
      Optimizer optimizer(model.parameters(), options);
      train_steps(model, optimizer, 0, 10, rank, ranks);
      expect_equal(whole_values_of(model), expected, 1e-6);
    });
  }
}

TEST(FullyShard, ComesToWhatOneProcessComesTo) {
  expect_what_one_process_comes_to<optim::SGD>(optim::SGDOptions(0.1).momentum(0.9));
  // The step of these is about as large for a gradient of any size, so that one of rounding errors counts as others do.
  expect_what_one_process_comes_to<optim::AdamW>(optim::AdamWOptions(0.001).eps(1e-3));
  expect_what_one_process_comes_to<optim::RMSprop>(optim::RMSpropOptions(0.001).eps(1e-3));
  expect_what_one_process_comes_to<optim::Adagrad>(optim::AdagradOptions(0.001).eps(1e-3));
}

bool has_memory(const Tensor& parameter) { return parameter.storage().nbytes() > 0; }

TEST(FullyShard, ParametersHaveMemoryOnlyWhileTheyAreUsed) {
  run_ranks(2, [](int rank) {
    Net net = make_net();
    std::int64_t all = 0;
    for (const Tensor& parameter : net->parameters()) all += parameter.numel();
    auto model = divided(net, 1);
    const auto collected = [&] {
      int count = has_memory(net->embedding->weight) ? 1 : 0;
      for (const auto& block : *net->blocks) count += has_memory(block->as<BlockImpl>()->norm->weight) ? 1 : 0;
      return count;
    };
    EXPECT_EQ(collected(), 0);
    const Tensor loss = loss_of(model, 0, rank, 2);
    EXPECT_EQ(collected(), 1) << "for the backward pass, which begins there";
    loss.backward();
    EXPECT_EQ(collected(), 0);
    for (const Tensor& parameter : net->parameters()) EXPECT_FALSE(parameter.grad().defined());
    std::int64_t own = 0;
    for (const Tensor& part : model.parameters()) {
      EXPECT_EQ(part.sizes(), part.grad().sizes());
      own += part.numel();
    }
    EXPECT_NEAR(static_cast<double>(own) / static_cast<double>(all), 0.5, 0.05);
    EXPECT_EQ(model.named_parameters().size(), net->named_parameters().size());
  });
}

// Layers in an order that is given for each pass. Notes for each of them whether the next one had memory when it began.
struct OrderedImpl : nn::Module {
  Tensor forward(Tensor x, const std::vector<std::size_t>& order) {
    next_had_memory.clear();
    for (std::size_t i = 0; i < order.size(); ++i) {
      x = torch::tanh(layers[order[i]](x));
      if (i + 1 < order.size()) next_had_memory.push_back(has_memory(layers[order[i + 1]]->weight));
    }
    return x;
  }
  std::vector<nn::Linear> layers = {register_module("a", nn::Linear(8, 8)), register_module("b", nn::Linear(8, 8)),
                                    register_module("c", nn::Linear(8, 8)), register_module("d", nn::Linear(8, 8))};
  std::vector<bool> next_had_memory = {};
};
TORCH_MODULE(Ordered);

Ordered make_ordered() {
  torch::manual_seed(8);
  return Ordered();
}

TEST(FullyShard, TheNextParametersAreCollectedWhileOthersAreUsed) {
  run_ranks(2, [](int) {
    for (const std::int64_t most : {1, 2}) {
      auto model = fully_shard(make_ordered(), modules_of<nn::LinearImpl>(), {.most_collected = most});
      for (int pass = 0; pass < 4; ++pass) {
        model.forward(torch::ones({2, 8}), std::vector<std::size_t>{0, 1, 2, 3}).sum().backward();
        EXPECT_THAT(model->next_had_memory, Each(most == 2 && pass >= 2)) << pass;  // after two in this order
      }
    }
  });
}

TEST(FullyShard, ParametersThatAreUsedInAnotherOrderThanBeforeAreCollected) {
  const std::vector<std::vector<std::size_t>> orders = {{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}, {0, 2, 1, 3}, {3, 2},
                                                        {0, 1, 2, 3}, {1, 1, 0},    {3, 2, 1, 0}, {0, 3},       {0, 1}};
  const auto train = [&](auto& model, auto& optimizer) {
    for (const std::vector<std::size_t>& order : orders) {
      optimizer.zero_grad();
      model.forward(torch::ones({2, 8}), order).square().sum().backward();
      optimizer.step();
    }
  };
  Ordered alone = make_ordered();
  optim::SGD whole(alone->parameters(), optim::SGDOptions(0.1));
  train(*alone, whole);
  const std::vector<Tensor> expected = values_of(*alone);
  run_ranks(2, [&](int) {
    for (const std::int64_t most : {2, 3}) {
      auto model = fully_shard(make_ordered(), modules_of<nn::LinearImpl>(), {.most_collected = most});
      optim::SGD optimizer(model.parameters(), optim::SGDOptions(0.1));
      train(model, optimizer);
      const auto collected = model.whole();
      expect_equal(values_of(model.module()), expected, 1e-6);
    }
  });
}

TEST(FullyShard, EvaluationIsTheSameAsThatOfTheWholeModel) {
  Net alone = make_net();
  const torch::NoGradGuard no_gradients;
  const double expected = loss_of(*alone, 3).item<double>();
  run_ranks(3, [&](int rank) {
    auto model = divided(make_net());
    model.eval();
    EXPECT_EQ(loss_of(model, 3).item<double>(), expected) << "all ranks have the same examples";
    const auto whole = model.whole();
    if (rank == 1) {
      EXPECT_EQ(loss_of(model.module(), 3).item<double>(), expected) << "one rank works alone";
    }
  });
}

TEST(FullyShard, GradientsAreAccumulatedWithoutExchange) {
  Net alone = make_net();
  for (int step = 0; step < 3; ++step) loss_of(*alone, step).backward();
  run_ranks(2, [&](int rank) {
    Net net = make_net();
    auto model = divided(net);
    {
      const auto local = model.no_sync();
      loss_of(model, 0, rank, 2).backward();
      loss_of(model, 1, rank, 2).backward();
      EXPECT_TRUE(net->scale.grad().defined());
      EXPECT_FALSE(model.parameters()[0].grad().defined());
    }
    loss_of(model, 2, rank, 2).backward();
    Tensor sum = torch::zeros({}, torch::kDouble);
    for (const Tensor& part : model.parameters()) sum += part.grad().to(torch::kDouble).square().sum();
    all_reduce(sum);
    double expected = 0;
    for (const Tensor& parameter : alone->parameters())
      expected += parameter.grad().to(torch::kDouble).square().sum().item<double>();
    EXPECT_NEAR(sum.item<double>(), expected, 1e-5 * expected);
  });
}

TEST(FullyShard, TwoBackwardPassesAddUp) {
  Net alone = make_net();
  loss_of(*alone, 0).backward();
  loss_of(*alone, 1).backward();
  run_ranks(2, [&](int rank) {
    auto model = divided(make_net());
    const Tensor first = loss_of(model, 0, rank, 2);
    const Tensor second = loss_of(model, 1, rank, 2);  // before the first one's backward pass
    first.backward();
    second.backward();
    EXPECT_NEAR(model.clip_grad_norm(1e9), nn::utils::clip_grad_norm_(alone->parameters(), 1e9), 1e-5);
  });
}

struct ThrowsInBackward : torch::autograd::Function<ThrowsInBackward> {
  static Tensor forward(torch::autograd::AutogradContext*, const Tensor& x) { return x.clone(); }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list&) {
    throw std::runtime_error("there is no gradient");
  }
};

struct FaultyImpl : nn::Module {
  Tensor forward(const Tensor& x) {
    const Tensor between = first(x);
    return second(fails ? ThrowsInBackward::apply(between) : between);
  }
  nn::Linear first = register_module("first", nn::Linear(4, 4));
  nn::Linear second = register_module("second", nn::Linear(4, 4));
  bool fails = false;
};
TORCH_MODULE(Faulty);

// The gradients of the one that failed were among the next one's, or those of the next one were not divided.
TEST(FullyShard, ABackwardPassThatThrowsLeavesNothingForTheNext) {
  const auto check = [](bool are_together, bool in_no_sync) {
    torch::manual_seed(8);
    Faulty alone;
    torch::manual_seed(8);
    Faulty net;
    const Tensor x = torch::ones({3, 4});
    auto model = fully_shard(net, [&](const std::string&, const nn::Module&) { return !are_together; });
    optim::SGD whole(alone->parameters(), optim::SGDOptions(0.1));
    optim::SGD optimizer(model.parameters(), optim::SGDOptions(0.1));
    net->fails = true;
    if (in_no_sync) {
      const auto local = model.no_sync();
      EXPECT_ANY_THROW(model(x).sum().backward());
    } else {
      EXPECT_ANY_THROW(model(x).sum().backward());
    }
    net->fails = false;
    for (int step = 0; step < 2; ++step) {
      whole.zero_grad();
      alone->forward(x).square().sum().backward();
      whole.step();
      model.zero_grad();
      model(x).square().sum().backward();
      optimizer.step();
    }
    const auto guard = model.whole();
    expect_equal(values_of(*net), values_of(*alone), 1e-6);
  };
  for (const int ranks : {1, 2}) {
    run_ranks(ranks, [&](int) {
      for (const bool are_together : {false, true}) {
        check(are_together, false);
        check(are_together, true);
      }
    });
  }
}

TEST(FullyShard, ABackwardPassAfterOneThatThrowsNeedsAForwardPass) {
  run_ranks(2, [](int) {
    Faulty net;
    auto model = fully_shard(net, modules_of<nn::LinearImpl>());
    net->fails = true;
    const Tensor loss = model(torch::ones({3, 4})).sum();
    EXPECT_ANY_THROW(loss.backward({}, /*retain_graph=*/true));
    EXPECT_THAT(message_of<InvalidArgument>([&] { loss.backward(); }), HasSubstr("call forward() again"));
    net->fails = false;
    model(torch::ones({3, 4})).sum().backward();
  });
}

TEST(FullyShard, NormsAreClippedOverAllRanks) {
  for (const double norm_type : {2.0, 1.0, std::numeric_limits<double>::infinity()}) {
    Net alone = make_net();
    loss_of(*alone, 0).backward();
    const double norm = nn::utils::clip_grad_norm_(alone->parameters(), 0.05, norm_type);
    EXPECT_GT(norm, 0.05);
    run_ranks(3, [&](int rank) {
      auto model = divided(make_net());
      loss_of(model, 0, rank, 3).backward();
      EXPECT_NEAR(model.clip_grad_norm(0.05, norm_type), norm, 1e-5 * norm);
      EXPECT_NEAR(model.clip_grad_norm(1, norm_type), 0.05, 1e-5) << "now it is clipped";
    });
  }
  auto model = divided(make_net());
  EXPECT_THAT(message_of<InvalidArgument>([&] { model.clip_grad_norm(-1); }), HasSubstr("a max_norm of -1"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { model.clip_grad_norm(1, 0); }), HasSubstr("a norm_type of 0"));
}

TEST(FullyShard, ChangesOfTheWholeModelAreTakenOver) {
  const TemporaryDirectory directory;
  run_ranks(2, [&](int rank) {
    Net net = make_net();
    auto model = divided(net);
    {
      const auto whole = model.whole();
      const torch::NoGradGuard no_gradients;
      for (Tensor& parameter : net->parameters()) parameter.clamp_(-0.01, 0.01);
      if (rank == 0) save_state(directory / "model.pt", model.module());
      model.save_shard(directory.path(), nullptr, "changed");
      for (Tensor& parameter : net->parameters()) parameter.mul_(0.5);
    }
    for (const Tensor& value : whole_values_of(model)) EXPECT_LE(value.abs().max().item<float>(), 0.005F);
    model.load_shards(directory.path(), nullptr, "changed");
    {
      const auto whole = model.whole();
      EXPECT_EQ(net->scale.item<float>(), 0.01F) << "as it was saved under whole()";
    }
    for (const Tensor& part : model.parameters())
      if (part.numel() > 0) EXPECT_LE(part.abs().max().item<float>(), 0.01F);
    for (const Tensor& value : whole_values_of(model)) EXPECT_LE(value.abs().max().item<float>(), 0.01F);
  });
  Net net;
  load_state(directory / "model.pt", net);
  EXPECT_LE(net->embedding->weight.abs().max().item<float>(), 0.01F);
}

TEST(FullyShard, AnotherNumberOfRanksGoesOnFromItsFiles) {
  const TemporaryDirectory directory;
  const optim::AdamWOptions options = optim::AdamWOptions(0.001).eps(1e-3).amsgrad(true);
  Net alone = make_net();
  optim::AdamW whole(alone->parameters(), options);
  train_steps(*alone, whole, 0, 10);
  const std::vector<Tensor> expected = values_of(*alone);
  for (const int before : {1, 3, 4}) {
    const fs::path checkpoint = directory / std::to_string(before);
    fs::create_directory(checkpoint);
    run_ranks(before, [&](int rank) {
      auto model = divided(make_net());
      optim::AdamW optimizer(model.parameters(), options);
      train_steps(model, optimizer, 0, 5, rank, before);
      model.save_shard(checkpoint, &optimizer);
    });
    for (const int after : {1, 2, 4}) {
      run_ranks(after, [&](int rank) {
        // Another division of the model, too.
        auto model =
            after == 2
                ? fully_shard(Net(), [](const std::string& name, const nn::Module&) { return name == "recurrence"; })
                : divided(Net());
        optim::AdamW optimizer(model.parameters(), optim::AdamWOptions(7));
        model.load_shards(checkpoint, &optimizer);
        train_steps(model, optimizer, 5, 10, rank, after);
        expect_equal(whole_values_of(model), expected, 1e-6);
      });
    }
  }
}

TEST(FullyShard, FilesThatAreMissingOrDoNotBelongTogetherAreNamed) {
  const TemporaryDirectory directory;
  const auto save = [&](int ranks, int steps, const fs::path& to) {
    fs::create_directory(to);
    run_ranks(ranks, [&](int rank) {
      auto model = divided(make_net());
      optim::Adam optimizer(model.parameters(), optim::AdamOptions(0.1));
      train_steps(model, optimizer, 0, steps, rank, ranks);
      model.save_shard(to, &optimizer);
    });
  };
  const fs::path at = directory / "a";
  auto model = divided(make_net());
  optim::Adam optimizer(model.parameters(), optim::AdamOptions(0.3));
  const std::vector<Tensor> before = whole_values_of(model);
  const auto fault = [&](torch::optim::Optimizer* loaded) {
    const std::string message = message_of<Error>([&] { model.load_shards(at, loaded); });
    expect_equal(whole_values_of(model), before, 0);
    EXPECT_EQ(optimizer.param_groups()[0].options().get_lr(), 0.3);
    EXPECT_TRUE(optimizer.state().empty());
    return message;
  };
  EXPECT_THAT(fault(nullptr), HasSubstr("there is nothing of a model in parts, \"model\""));
  save(3, 1, at);
  save(3, 2, directory / "later");
  fs::rename(at / "model_1_of_3.pt", directory / "kept");
  EXPECT_THAT(fault(&optimizer), HasSubstr("model_1_of_3.pt is missing"));
  fs::copy_file(directory / "later" / "model_1_of_3.pt", at / "model_1_of_3.pt");
  EXPECT_THAT(fault(&optimizer),
              AllOf(HasSubstr("model_1_of_3.pt"), HasSubstr("it was written after 2 backward passes")));
  fs::copy_file(at / "model_0_of_3.pt", at / "model_1_of_3.pt", fs::copy_options::overwrite_existing);
  EXPECT_THAT(fault(&optimizer),
              AllOf(HasSubstr("model_1_of_3.pt"), HasSubstr("does not belong to the files before it")));
  fs::rename(directory / "kept", at / "model_1_of_3.pt");

  optim::SGD sgd(model.parameters(), optim::SGDOptions(0.3));
  EXPECT_THAT(fault(&sgd), HasSubstr("SGD"));
  optim::Adam fewer({model.parameters()[0]}, optim::AdamOptions(0.3));
  EXPECT_THAT(fault(&fewer), HasSubstr("its optimizer has other parameters in group 0"));
  Net other;
  optim::Adam of_another(other->parameters(), optim::AdamOptions(0.3));
  EXPECT_THAT(fault(&of_another), HasSubstr("that are not of FullyShardedModel::parameters()"));
  {
    auto smaller = fully_shard(nn::Sequential(nn::Linear(2, 2)), modules_of<nn::LinearImpl>());
    EXPECT_THAT(message_of<InvalidArgument>([&] { smaller.load_shards(at); }),
                AllOf(HasSubstr("\"0.weight\" [2, 2] of the model is missing"),
                      HasSubstr("\"blocks.0.attention.in_proj_bias\" of the files is unknown to the model")));
  }
  fs::resize_file(at / "model_2_of_3.pt", 100);
  EXPECT_THAT(fault(nullptr), HasSubstr("model_2_of_3.pt"));
}

// Returns a dictionary with another value.
pt::Value with(const pt::Value& dict, const std::string& key, const pt::Value& value) {
  pt::DictBuilder changed;
  const std::vector<pt::Value>& items = dict.dict()->items;
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    const auto* const name = items[i].get_if<std::string>();
    changed.add(items[i], name != nullptr && *name == key ? value : items[i + 1]);
  }
  return changed.take();
}

TEST(FullyShard, APartBeyondTheEndOfItsParameterIsRefused) {
  const TemporaryDirectory directory;
  auto model = divided(make_net());
  model.save_shard(directory.path());
  const fs::path file = directory / "model_0_of_1.pt";
  const pt::Value content = pt::read_file(file);
  const pt::Value& parameters = *content.find("parameters");
  for (const std::int64_t begin : {std::int64_t{1}, std::numeric_limits<std::int64_t>::max()}) {
    const pt::Value scale = with(*parameters.find("scale"), "begin", begin);
    pt::write_file(file, with(content, "parameters", with(parameters, "scale", scale)));
    EXPECT_THAT(message_of<InvalidArgument>([&] { model.load_shards(directory.path()); }),
                HasSubstr("its \"scale\" has elements beyond the end of the parameter"));
  }
}

TEST(FullyShard, AGradientScalerDecidesForAllRanks) {
  run_ranks(2, [](int rank) {
    auto model = divided(make_net());
    optim::SGD optimizer(model.parameters(), optim::SGDOptions(0.1));
    GradScaler scaler({.init_scale = 4});
    scaler.scale(loss_of(model, 0, rank, 2)).backward();
    if (rank == 1) {
      for (const Tensor& part : model.parameters()) part.mutable_grad().fill_(std::numeric_limits<float>::infinity());
    }
    EXPECT_FALSE(scaler.step(optimizer)) << "on rank " << rank;
    scaler.update();
    EXPECT_EQ(scaler.get_scale(), 2);
    optimizer.zero_grad();
    scaler.scale(loss_of(model, 1, rank, 2)).backward();
    EXPECT_TRUE(scaler.step(optimizer));
  });
}

TEST(FullyShard, OneRanksPartIsNotTheStateOfTheOptimizer) {
  const TemporaryDirectory directory;
  run_ranks(2, [&](int) {
    auto model = divided(make_net());
    optim::Adam optimizer(model.parameters(), optim::AdamOptions(0.1));
    const auto whole = model.whole();
    const auto fault = [&](const std::function<void()>& act) { return message_of<InvalidArgument>(act); };
    EXPECT_THAT(fault([&] { save_state(directory / "s.pt", model.module(), optimizer, 1); }), HasSubstr("save_shard"));
    EXPECT_THAT(fault([&] { save_dict(directory / "s.pt", {{"optimizer", optimizer}}); }), HasSubstr("save_shard"));
    EXPECT_THAT(fault([&] { prepare_optimizer<optim::Adam>(model.parameters(), optim::AdamOptions(0.1)); }),
                HasSubstr("divided already"));
  });
}

TEST(FullyShard, UseOutsideOfAPassIsRefused) {
  run_ranks(2, [](int) {
    Net net = make_net();
    auto model = divided(net);
    const std::string message = message_of<InvalidArgument>([&] { net->embedding->weight.sum(); });
    EXPECT_THAT(message, AllOf(HasSubstr("embedding.weight"), HasSubstr("FullyShardedModel::whole()")));
    EXPECT_THROW(save_state("/dev/null", *net), InvalidArgument);
    EXPECT_EQ(net->embedding->weight.sizes(), (std::vector<std::int64_t>{words, width})) << "a shape it has";
  });
  Net net = make_net();
  run_ranks(2, [&](int) {
    divided(net);
    EXPECT_THAT(message_of<InvalidArgument>([&] { net->embedding->weight.sum(); }), HasSubstr("the model is gone"));
  });
}

TEST(FullyShard, ParametersThatCouldNotBeCollectedAreNotUsed) {
  const TemporaryDirectory directory;
  const std::vector<int> statuses = statuses_of_ranks(2, [&](int rank) {
    Net net = make_net();
    auto model = fully_shard(net, [](const std::string&, const nn::Module&) { return false; });
    model.save_shard(directory.path());
    whole_values_of(model);
    if (rank == 1) ::raise(SIGKILL);
    for (int i = 0; i < 2; ++i) {
      EXPECT_THROW(whole_values_of(model), EngineError);  // the group's timeout is longer than this test's
      EXPECT_THAT(message_of<InvalidArgument>([&] { net->embedding->weight.sum(); }),
                  HasSubstr("is used outside of forward() and backward()"));
    }
    model.load_shards(directory.path());  // is not under whole()
  });
  EXPECT_EQ(statuses[0], 0);
  EXPECT_TRUE(WIFSIGNALED(statuses[1]));
}

TEST(FullyShard, DifferentPoliciesOfRanksAreNamed) {
  run_ranks(2, [](int rank) {
    const auto policy = [&](const std::string& name, const nn::Module&) { return name == "blocks.0" && rank == 1; };
    EXPECT_THAT(message_of<InvalidArgument>([&] { fully_shard(make_net(), policy); }),
                AllOf(HasSubstr("fully_shard"), HasSubstr("blocks.0")));
  });
  EXPECT_THAT(message_of<InvalidArgument>([] { fully_shard(make_net(), {}, {.most_collected = 0}); }),
              AllOf(HasSubstr("the policy is empty"), HasSubstr("a most_collected of 0")));
  EXPECT_THAT(message_of<InvalidArgument>([] { fully_shard(Net(nullptr), modules_of<BlockImpl>()); }),
              HasSubstr("there is no model"));
}

TEST(FullyShard, ParametersWithoutAGradientStayAsTheyAre) {
  run_ranks(2, [](int rank) {
    Net net = make_net();
    const Tensor frozen = net->blocks[1]->as<BlockImpl>()->norm->weight;
    frozen.set_requires_grad(false);
    const Tensor before = frozen.detach().clone();
    auto model = divided(net);
    std::vector<Tensor> trained;
    for (const Tensor& part : model.parameters())
      if (part.requires_grad()) trained.push_back(part);
    EXPECT_EQ(trained.size() + 1, model.parameters().size());
    optim::SGD optimizer(trained, optim::SGDOptions(0.1));
    train_steps(model, optimizer, 0, 3, rank, 2);
    const auto whole = model.whole();
    EXPECT_TRUE(torch::equal(frozen, before));
  });
}

TEST(FullyShard, BuffersAreThoseOfRankZero) {
  const auto batches = [](int rank) { return torch::full({4, 3}, rank + 1.0); };
  run_ranks(2, [&](int rank) {
    nn::Sequential net(nn::BatchNorm1d(3), nn::Linear(3, 1));
    auto model = fully_shard(net, modules_of<nn::LinearImpl>());
    model(batches(rank)).sum().backward();
    const torch::NoGradGuard no_gradients;
    model.eval();
    model(batches(rank));
    EXPECT_NEAR(net->named_buffers()["0.running_mean"][0].item<double>(), 0.1, 1e-6);
  });
}

}  // namespace
}  // namespace cadre::train
