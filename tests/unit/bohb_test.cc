#include "cadre/tune/searchers/bohb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cadre/error.h"
#include "support/message_of.h"
#include "tune/options/options.h"

namespace cadre::tune {
namespace {

using test_support::message_of;
using ::testing::HasSubstr;

// Budgets of 1, 3 and 9.
BOHB nines() { return {.max_t = 9, .min_observations = 4, .random_fraction = 0}; }

SearcherSetting setting() {
  return {.seed = 1, .space = {{"x", uniform(0, 1)}, {"y", uniform(0, 1)}}, .metric = {"loss", Mode::min}};
}

Metrics at(double time, double loss) { return {{"training_iteration", time}, {"loss", loss}}; }

// A searcher whose trials are spread evenly over x.
class Told {
 public:
  explicit Told(const BOHB& options) : searcher_(options.make(setting())) {}

  TrialIndex add(double x) {
    searcher_->on_trial_add(next_, {{"x", x}, {"y", 0.5}});
    return next_++;
  }
  double average_x() const {
    double sum = 0;
    for (TrialIndex trial = 1000; trial < 1040; ++trial) {
      const Config config = *searcher_->suggest(trial);
      sum += config.number("x").value_or(std::numeric_limits<double>::quiet_NaN()) / 40;
    }
    return sum;
  }
  Searcher& operator*() const { return *searcher_; }

 private:
  std::unique_ptr<Searcher> searcher_;
  TrialIndex next_ = 0;
};

TEST(Bohb, LearnsFromTheLargestBudgetWithEnoughObservations) {
  Told told(nines());
  EXPECT_EQ((*told).debug_string(), "BOHB: configs are random");
  for (int i = 0; i < 20; ++i) {
    const double x = (i + 0.5) / 20;
    const TrialIndex trial = told.add(x);
    (*told).on_result(trial, at(1, x));  // small x look good at first
    if (i % 5 == 0) (*told).on_result(trial, at(3, 1 - x));
    if (i == 14) {
      EXPECT_LT(told.average_x(), 0.4);
    }
  }
  EXPECT_EQ((*told).debug_string(), "BOHB: learns from 4 trials at training_iteration 3");
  EXPECT_GT(told.average_x(), 0.6) << "and large x are good in the end";
}

TEST(Bohb, AResultCountsOnceAtTheLargestBudgetThatItHasReached) {
  BOHB options = nines();
  options.min_observations = 2;
  Told told(options);
  (*told).on_result(told.add(0.1), at(0.5, 1));
  (*told).on_result(0, at(std::numeric_limits<double>::quiet_NaN(), 1));
  EXPECT_EQ(to_json((*told).save()), "[[], [], []]");
  (*told).on_result(0, at(2, 3));
  (*told).on_result(0, at(2.5, 4));
  (*told).on_result(0, at(10, 5));
  (*told).on_result(told.add(0.2), at(4, std::numeric_limits<double>::quiet_NaN()));
  (*told).on_result(1, {{"loss", 1}});
  EXPECT_EQ(to_json((*told).save()), "[[[0, 3.0]], [[1, Infinity]], [[0, 5.0]]]");
  (*told).on_trial_end(1, TrialStatus::terminated, at(9, 2));
  EXPECT_EQ((*told).debug_string(), "BOHB: learns from 2 trials at training_iteration 9");
}

TEST(Bohb, AShareOfTheSuggestionsIsRandom) {
  BOHB options = nines();
  options.random_fraction = 0.25;
  Told told(options);
  for (int i = 0; i < 10; ++i) (*told).on_result(told.add(0.05 + i / 10.0), at(9, i));
  int random = 0;
  for (TrialIndex trial = 100; trial < 1100; ++trial) random += (*told).suggest(trial)->empty() ? 1 : 0;
  EXPECT_NEAR(random, 250, 60);
}

TEST(Bohb, AStateOfOtherBudgetsIsRefused) {
  Told told(nines());
  EXPECT_THROW((*told).load(list(List(), List())), InvalidArgument);
  EXPECT_THROW((*told).load(list(list(list(7, 1.0)), List(), List())), InvalidArgument);
}

TEST(Bohb, BadOptionsAreNamed) {
  const auto faults = [](const BOHB& searcher) {
    TunerOptions options{.param_space = {{"x", uniform(0, 10)}},
                         .tune_config = {.metric = minimize("loss"), .searcher = searcher}};
    std::vector<std::string> notes;
    return message_of<InvalidArgument>([&] { check_options(Trainable("f"), resolve(Trainable("f"), options, notes)); });
  };
  EXPECT_THAT(faults({.max_t = 0}), HasSubstr("searcher (BOHB) max_t: it is 0; it must be from 1 to 10^9"));
  EXPECT_THAT(faults({.reduction_factor = 1}), HasSubstr("reduction_factor: it is 1"));
  EXPECT_THAT(faults({.min_observations = 1}), HasSubstr("min_observations: it is 1; it must be at least 2"));
  EXPECT_THAT(faults({.good_fraction = 1}), HasSubstr("good_fraction: it is 1"));
  EXPECT_THAT(faults({.num_candidates = 0}), HasSubstr("num_candidates: it is 0"));
  EXPECT_THAT(faults({.random_fraction = -1}), HasSubstr("random_fraction: it is -1"));
}

}  // namespace
}  // namespace cadre::tune
