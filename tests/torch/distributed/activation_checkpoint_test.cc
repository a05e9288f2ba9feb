// Activations that are computed again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "cadre/train_torch.h"
#include "ranks.h"

namespace cadre::train {
namespace {

using namespace test_support;
using torch::Tensor;
namespace nn = torch::nn;

struct BlockImpl : nn::Module {
  Tensor forward(const Tensor& x) {
    ++calls;
    return torch::dropout(torch::tanh(linear(x)), 0.5, is_training());
  }
  nn::Linear linear = register_module("linear", nn::Linear(6, 6));
  int calls = 0;
};
TORCH_MODULE(Block);

struct NetImpl : nn::Module {
  explicit NetImpl(bool recomputes) : recomputes(recomputes) {}
  Tensor forward(const Tensor& input) {
    Tensor x = input;
    for (const auto& module : *blocks) {
      auto* const block = module->as<BlockImpl>();
      x = recomputes ? checkpoint_activations([block](const Tensor& x) { return block->forward(x); }, x)
                     : block->forward(x);
    }
    return x;
  }
  bool recomputes;
  nn::ModuleList blocks = register_module("blocks", nn::ModuleList(Block(), Block(), Block()));
};
TORCH_MODULE(Net);

Net make_net(bool recomputes) {
  torch::manual_seed(8);
  return Net(recomputes);
}

std::vector<Tensor> gradients_of(const nn::Module& net) {
  std::vector<Tensor> gradients;
  for (const Tensor& parameter : net.parameters()) gradients.push_back(parameter.grad().clone());
  return gradients;
}

void expect_equal(const std::vector<Tensor>& got, const std::vector<Tensor>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(torch::equal(got[i], expected[i])) << i;
}

// Returns the output and all gradients, and the next random number.
template <class Model>
std::vector<Tensor> step(Model& model, const nn::Module& net, const Tensor& x) {
  torch::manual_seed(3);
  const Tensor output = model.forward(x);
  output.square().sum().backward();
  std::vector<Tensor> all = gradients_of(net);
  all.push_back(output.detach());
  all.push_back(torch::rand({1}));
  return all;
}

TEST(CheckpointActivations, GradientsAreTheSameBitForBitWithDropout) {
  for (const bool has_input_gradient : {false, true}) {
    const auto run = [&](bool recomputes) {
      Net net = make_net(recomputes);
      Tensor x = torch::ones({4, 6}).requires_grad_(has_input_gradient);
      std::vector<Tensor> all = step(*net, *net, x);
      if (has_input_gradient) all.push_back(x.grad());
      EXPECT_EQ(net->blocks[0]->as<BlockImpl>()->calls, recomputes ? 2 : 1);
      return all;
    };
    expect_equal(run(true), run(false));
  }
}

TEST(CheckpointActivations, WithoutGradientsTheFunctionIsCalledOnce) {
  const torch::NoGradGuard no_gradients;
  Net net = make_net(true);
  net->forward(torch::ones({4, 6}));
  EXPECT_EQ(net->blocks[0]->as<BlockImpl>()->calls, 1);
}

TEST(CheckpointActivations, ASecondBackwardPassOverAGraphThatIsKeptComputesAgain) {
  const auto run = [](bool recomputes) {
    Net net = make_net(recomputes);
    const Tensor loss = net->forward(torch::ones({4, 6})).square().sum();
    loss.backward({}, /*retain_graph=*/true);
    loss.backward();
    EXPECT_EQ(net->blocks[0]->as<BlockImpl>()->calls, recomputes ? 3 : 1);
    EXPECT_ANY_THROW(loss.backward()) << "the graph was kept once";
    return gradients_of(*net);
  };
  expect_equal(run(true), run(false));
}

// They were those of the first call again.
TEST(CheckpointActivations, RandomNumbersGoOnAfterASecondCallThatThrows) {
  torch::manual_seed(3);
  torch::rand({2});
  const Tensor next = torch::rand({2});
  torch::manual_seed(3);
  int calls = 0;
  const Tensor output = checkpoint_activations(
      [&calls](const Tensor& x) {
        if (++calls > 1) throw std::runtime_error("only once");
        return x * torch::rand({2});
      },
      torch::ones({2}).requires_grad_());
  EXPECT_ANY_THROW(output.sum().backward());
  EXPECT_TRUE(torch::equal(torch::rand({2}), next));
}

TEST(CheckpointActivations, SeveralInputsAndOutputsMayBe) {
  const Tensor a = torch::full({2}, 3.0).requires_grad_();
  const Tensor b = torch::full({2}, 5.0);
  const Tensor c = torch::full({2}, 7.0).requires_grad_();
  const std::vector<Tensor> outputs = checkpoint_activations(
      [](const Tensor& a, const Tensor& b, const Tensor& c) { return std::vector<Tensor>{a * b, a * c, c.detach()}; },
      a, b, c);
  ASSERT_EQ(outputs.size(), 3U);
  (outputs[0] + outputs[1]).sum().backward();
  EXPECT_EQ(a.grad()[0].item<double>(), 12);
  EXPECT_FALSE(b.grad().defined());
  EXPECT_EQ(c.grad()[0].item<double>(), 3);
}

TEST(CheckpointActivations, MayBeNested) {
  const auto cube = [](const Tensor& x) {
    return x * checkpoint_activations([](const Tensor& y) { return y * y; }, x);
  };
  const Tensor x = torch::full({}, 2.0).requires_grad_();
  checkpoint_activations(cube, x).backward();
  EXPECT_EQ(x.grad().item<double>(), 12);
}

TEST(CheckpointActivations, KeepsMixedPrecisionForTheSecondCall) {
  nn::Linear linear(4, 4);
  std::vector<torch::Dtype> types;
  Tensor output;
  {
    const auto mixed_precision = autocast(torch::kBFloat16);
    output = checkpoint_activations(
        [&](const Tensor& x) {
          const Tensor y = linear(x);
          types.push_back(y.scalar_type());
          return y;
        },
        torch::ones({1, 4}));
  }
  output.sum().backward();
  EXPECT_THAT(types, ::testing::ElementsAre(torch::kBFloat16, torch::kBFloat16));
}

TEST(CheckpointActivations, GoesWithModelsOfSeveralRanks) {
  const Tensor x = torch::randn({4, 6});
  const auto run = [&](bool recomputes, bool is_divided) {
    Net net = make_net(recomputes);
    if (!is_divided) {
      auto model = prepare_model(net);
      return step(model, *net, x);
    }
    auto model = fully_shard(net, modules_of<BlockImpl>(), {.most_collected = 1});
    torch::manual_seed(3);
    model(x).square().sum().backward();
    std::vector<Tensor> gradients;
    for (const Tensor& part : model.parameters()) gradients.push_back(part.grad().clone());
    return gradients;
  };
  run_ranks(2, [&](int) {
    for (const bool is_divided : {false, true}) expect_equal(run(true, is_divided), run(false, is_divided));
  });
}

}  // namespace
}  // namespace cadre::train
