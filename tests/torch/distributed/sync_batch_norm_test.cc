// Batch normalisation over the batches of all ranks gives the same results as over one batch with all examples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cadre/train_torch.h"
#include "ranks.h"

namespace cadre::train {
namespace {

using namespace test_support;
using torch::Tensor;
namespace nn = torch::nn;

constexpr int ranks = 3;

struct Case {
  const char* name;
  std::function<nn::Sequential()> make;
  std::vector<std::int64_t> shape;       // of all examples
  std::vector<std::int64_t> first_rows;  // of each rank; then the number of all rows
};
void PrintTo(const Case& tested, std::ostream* out) { *out << tested.name; }

class SyncBatchNorm : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(
    All, SyncBatchNorm,
    ::testing::Values(
        Case{"rows", [] { return nn::Sequential(nn::BatchNorm1d(4)); }, {12, 4}, {0, 4, 8, 12}},
        Case{"images", [] { return nn::Sequential(nn::BatchNorm2d(4)); }, {6, 4, 5, 3}, {0, 2, 4, 6}},
        Case{"volumes", [] { return nn::Sequential(nn::BatchNorm3d(4)); }, {6, 4, 2, 3, 2}, {0, 2, 4, 6}},
        Case{"batches of other sizes", [] { return nn::Sequential(nn::BatchNorm2d(4)); }, {9, 4, 2, 2}, {0, 1, 7, 9}},
        Case{"a rank without examples", [] { return nn::Sequential(nn::BatchNorm1d(4)); }, {9, 4}, {0, 5, 5, 9}},
        Case{"a network",
             [] {
               return nn::Sequential(nn::Linear(4, 6), nn::BatchNorm1d(6), nn::ReLU(), nn::Linear(6, 4),
                                     nn::BatchNorm1d(4));
             },
             {12, 4},
             {0, 4, 8, 12}},
        Case{"without running moments",
             [] { return nn::Sequential(nn::BatchNorm1d(nn::BatchNormOptions(4).track_running_stats(false))); },
             {12, 4},
             {0, 4, 8, 12}},
        Case{"a mean of all batches",
             [] { return nn::Sequential(nn::BatchNorm1d(nn::BatchNormOptions(4).momentum(std::nullopt))); },
             {12, 4},
             {0, 4, 8, 12}},
        Case{"without weights",
             [] { return nn::Sequential(nn::Linear(4, 4), nn::BatchNorm1d(nn::BatchNormOptions(4).affine(false))); },
             {12, 4},
             {0, 4, 8, 12}}),
    [](const auto& info) {
      std::string name = info.param.name;
      for (char& letter : name) letter = letter == ' ' ? '_' : letter;
      return name;
    });

struct Outcome {
  Tensor output, input_gradient;
  std::vector<Tensor> gradients, buffers;
};

std::vector<Tensor> defined(std::vector<Tensor> tensors) {
  std::erase_if(tensors, [](const Tensor& tensor) { return !tensor.defined(); });
  return tensors;
}

// Runs two passes and returns what the second one computes. `scale` undoes the mean of gradients over ranks.
template <class Model>
Outcome pass(Model& model, const nn::Module& net, const Tensor& input, const Tensor& weights, double scale) {
  Outcome outcome;
  for (int repetition = 0; repetition < 2; ++repetition) {  // the second pass begins with running moments of the first
    for (Tensor& parameter : defined(net.parameters())) parameter.mutable_grad().reset();
    const Tensor x = input.clone().requires_grad_();
    outcome.output = model.forward(x);
    (outcome.output * weights).sum().backward();
    outcome.input_gradient = x.grad();
  }
  for (const Tensor& parameter : defined(net.parameters())) outcome.gradients.push_back(parameter.grad() * scale);
  outcome.buffers = defined(net.buffers());
  return outcome;
}

void expect_close(const Tensor& got, const Tensor& expected) {
  ASSERT_EQ(got.sizes(), expected.sizes());
  EXPECT_TRUE(torch::allclose(got, expected, 1e-8, 1e-8)) << got << "\n" << expected;
}

TEST_P(SyncBatchNorm, ComesToWhatOneBatchComesTo) {
  const Case& tested = GetParam();
  const auto make = [&] {
    torch::manual_seed(4);
    nn::Sequential net = tested.make();
    net->to(torch::kDouble);
    const torch::NoGradGuard no_gradients;
    for (Tensor& parameter : defined(net->parameters())) parameter.add_(torch::rand_like(parameter));
    return net;
  };
  torch::manual_seed(5);
  const Tensor input = torch::randn(tested.shape, torch::kDouble) * 3 + 100;
  const Tensor weights = torch::randn(tested.shape, torch::kDouble);
  nn::Sequential alone = make();
  const Outcome whole = pass(*alone, *alone, input, weights, 1);
  run_ranks(ranks, [&](int rank) {
    const std::int64_t begin = tested.first_rows[static_cast<std::size_t>(rank)];
    const std::int64_t count = tested.first_rows[static_cast<std::size_t>(rank) + 1] - begin;
    nn::Sequential net = make();
    auto model = prepare_model(net, {.sync_batch_norm = true});
    const Outcome own = pass(model, *net, input.narrow(0, begin, count), weights.narrow(0, begin, count), ranks);
    expect_close(own.output, whole.output.narrow(0, begin, count));
    expect_close(own.input_gradient, whole.input_gradient.narrow(0, begin, count));
    for (std::size_t i = 0; i < whole.gradients.size(); ++i) expect_close(own.gradients[i], whole.gradients[i]);
    for (std::size_t i = 0; i < whole.buffers.size(); ++i) expect_close(own.buffers[i], whole.buffers[i]);
  });
}

TEST(SyncBatchNormOption, IsForTrainingInForwardOfThePreparedModel) {
  run_ranks(2, [](int rank) {
    nn::Sequential net(nn::BatchNorm1d(3));
    auto model = prepare_model(net, {.sync_batch_norm = true});
    const Tensor x = torch::full({4, 3}, static_cast<double>(rank));
    EXPECT_NEAR(model(x)[0][0].item<double>(), rank == 0 ? -1 : 1, 1e-3);
    EXPECT_NEAR(model.module().forward(x)[0][0].item<double>(), 0, 1e-3) << "it works alone";
    EXPECT_THROW(model(torch::zeros({4, 7})), std::exception);
    EXPECT_NEAR(model.module().forward(x)[0][0].item<double>(), 0, 1e-3) << "after an error, too";
    auto plain = prepare_model(nn::Sequential(nn::BatchNorm1d(3)));
    EXPECT_NEAR(plain(x)[0][0].item<double>(), 0, 1e-3);
    model.eval();
    if (rank == 0) model.module().forward(x);
  });
}

TEST(SyncBatchNormOption, GoesWithDividedModelsActivationsComputedAgainAndMixedPrecision) {
  run_ranks(2, [](int rank) {
    struct NetImpl : nn::Module {
      Tensor forward(const Tensor& x) {
        return checkpoint_activations([this](const Tensor& x) { return norm(linear(x)); }, x);
      }
      nn::Linear linear = register_module("linear", nn::Linear(3, 3));
      nn::BatchNorm1d norm = register_module("norm", nn::BatchNorm1d(3));
    };
    torch::manual_seed(1);
    auto model = fully_shard(std::make_shared<NetImpl>(), modules_of<nn::LinearImpl>(), {.sync_batch_norm = true});
    torch::manual_seed(2);
    const Tensor x = torch::randn({8, 3}) * 2 + 1;
    const auto mixed_precision = autocast(torch::kBFloat16);
    const Tensor output = model(x.narrow(0, 4 * rank, 4));
    EXPECT_EQ(output.scalar_type(), torch::kBFloat16);
    Tensor sum = output.detach().to(torch::kFloat).sum(0);
    all_reduce(sum);
    EXPECT_LT(sum.abs().max().item<double>(), 0.1) << "the mean of all ranks is 0";
    output.sum().backward();
  });
}

}  // namespace
}  // namespace cadre::train
