// Metrics of classifiers over several ranks. tests/compat/torch_metrics_test.py compares their values with
// torchmetrics'.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "cadre/train_torch.h"
#include "ranks.h"
#include "support/message_of.h"

namespace cadre::train {
namespace {

using namespace test_support;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Scores that are better than chance, and targets.
torch::data::Example<> examples(std::int64_t count, std::int64_t classes) {
  torch::manual_seed(4);
  const torch::Tensor targets = torch::randint(classes, {count}, torch::kLong);
  return {torch::randn({count, classes}) + torch::one_hot(targets, classes), targets};
}

// Expects a metric of three ranks, which have different numbers of examples, to be that of one; the first has none.
template <class Metric>
void expect_the_same_over_ranks(const Metric& empty, const torch::data::Example<>& all) {
  Metric alone = empty;
  alone.update(all.data, all.target);
  const auto expected = alone.compute();
  run_ranks(3, [&](int rank) {
    Metric own = empty;
    const std::vector<std::int64_t> bounds{0, 0, 17, all.target.size(0)};
    const std::int64_t begin = bounds[static_cast<std::size_t>(rank)];
    const std::int64_t end = bounds[static_cast<std::size_t>(rank) + 1];
    if (rank > 0) own.update(all.data.slice(0, begin, end), all.target.slice(0, begin, end));
    if constexpr (std::is_same_v<decltype(expected), const torch::Tensor>) {
      EXPECT_TRUE(torch::equal(own.compute(), expected));
    } else {
      EXPECT_NEAR(own.compute(), expected, 1e-9);
    }
    own.reset();
    if constexpr (std::is_same_v<decltype(expected), const torch::Tensor>) {
      EXPECT_EQ(own.compute().sum().template item<std::int64_t>(), 0);
    } else {
      EXPECT_TRUE(std::isnan(own.compute()));
    }
  });
}

TEST(Classification, MetricsOfAllRanksAreThoseOfAllExamples) {
  const torch::data::Example<> all = examples(50, 6);
  expect_the_same_over_ranks(ConfusionMatrix({.num_classes = 6}), all);
  expect_the_same_over_ranks(Accuracy({.num_classes = 6}), all);
  expect_the_same_over_ranks(Accuracy({.num_classes = 6, .top_k = 3, .average = Average::macro}), all);
  expect_the_same_over_ranks(F1Score({.num_classes = 6}), all);
  expect_the_same_over_ranks(AUROC({.num_classes = 6}), all);
  expect_the_same_over_ranks(Perplexity(), all);
}

TEST(Classification, PerplexityInHalfPrecisionIsThatOfTheSameLogits) {
  const torch::data::Example<> all = examples(50, 6);
  const torch::Tensor logits = all.data.to(torch::kBFloat16);
  Perplexity half;
  half.update(logits, all.target);
  Perplexity single;
  single.update(logits.to(torch::kFloat), all.target);
  EXPECT_NEAR(half.compute(), single.compute(), 1e-6);
}

TEST(Classification, AnAucOfOneClassIsNone) {
  AUROC binary;
  binary.update(torch::tensor({0.1, 0.7}), torch::tensor({1, 1}));
  EXPECT_TRUE(std::isnan(binary.compute()));
  binary.update(torch::tensor({0.2}), torch::tensor({0}));
  EXPECT_EQ(binary.compute(), 0.5);
}

TEST(Classification, WhatDoesNotBelongTogetherIsNamed) {
  const auto fault = [](const std::function<void()>& act) { return message_of<InvalidArgument>(act); };
  EXPECT_THAT(fault([] { ConfusionMatrix({.num_classes = 1}); }), HasSubstr("ConfusionMatrix: num_classes is 1"));
  EXPECT_THAT(fault([] { Accuracy({.num_classes = 1}); }), HasSubstr("Accuracy: num_classes is 1"));
  EXPECT_THAT(fault([] { F1Score({.num_classes = 1}); }), HasSubstr("F1Score: num_classes is 1"));
  EXPECT_THAT(fault([] { Accuracy({.num_classes = 3, .top_k = 3}); }), HasSubstr("top_k is 3 of 3 classes"));
  EXPECT_THAT(fault([] { AUROC({.num_classes = 3, .average = Average::micro}); }), HasSubstr("average is micro"));
  ConfusionMatrix matrix({.num_classes = 3});
  EXPECT_THAT(fault([&] { matrix.update(torch::zeros({4, 2}), torch::zeros(4, torch::kLong)); }),
              AllOf(HasSubstr("[4, 2]"), HasSubstr("scores of 3 classes")));
  EXPECT_THAT(fault([&] { matrix.update(torch::zeros({4}, torch::kLong), torch::zeros(5, torch::kLong)); }),
              HasSubstr("do not belong together"));
  EXPECT_THAT(fault([&] { matrix.update(torch::zeros(3), torch::tensor(1)); }), HasSubstr("do not belong together"));
  EXPECT_THAT(fault([&] { matrix.update(torch::zeros({4}), torch::zeros(4, torch::kLong)); }),
              HasSubstr("scores of all classes are needed"));
  EXPECT_THAT(fault([&] { matrix.update(torch::zeros({4, 3}), torch::zeros(4)); }), HasSubstr("floating-point"));
  matrix.update(torch::tensor({0, 1, 2}), torch::tensor({0, 3, -1}));
  EXPECT_THAT(fault([&] { matrix.compute(); }), HasSubstr("of 2 examples are none of the 3 classes"));
  Accuracy best({.num_classes = 4, .top_k = 2});
  EXPECT_THAT(fault([&] { best.update(torch::tensor({1}), torch::tensor({1})); }), HasSubstr("scores of all classes"));
  EXPECT_THAT(fault([&] { best.update(torch::zeros({1, 4}), torch::tensor({4})); }),
              HasSubstr("none of the 4 classes"));
  AUROC area({.num_classes = 3});
  EXPECT_THAT(fault([&] { area.update(torch::zeros(3), torch::zeros(3, torch::kLong)); }),
              HasSubstr("expected are [examples, 3] and [examples]"));
  EXPECT_THAT(fault([&] { area.update(torch::full({1, 3}, std::nan("")), torch::tensor({1})); }), HasSubstr("is NaN"));
  EXPECT_THAT(fault([&] { area.update(torch::zeros({1, 3}), torch::tensor({0.7})); }), HasSubstr("floating-point"));
  EXPECT_THAT(fault([] { Perplexity().update(torch::zeros({2, 9}), torch::zeros(2)); }), HasSubstr("floating-point"));
  EXPECT_THAT(fault([] { Perplexity().update(torch::zeros({2, 3, 9}), torch::zeros({2, 4}, torch::kLong)); }),
              HasSubstr("expected are [..., words] and [...]"));
  Perplexity padded;
  padded.update(torch::zeros({3, 9}), torch::tensor({0, -100, 9}));
  EXPECT_THAT(fault([&] { padded.compute(); }), HasSubstr("Perplexity: 2 targets are none of the words"));
}

}  // namespace
}  // namespace cadre::train
