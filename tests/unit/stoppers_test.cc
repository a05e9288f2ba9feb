#include "tune/stoppers/stoppers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "cadre/error.h"

namespace cadre::tune {
namespace {

using ::testing::ElementsAre;
using Verdict = ResultStopper::Verdict;

bool lost_patience(const std::string& trial_id, const Metrics& result) {
  if (result.contains("fault")) throw std::runtime_error("no opinion");
  return trial_id == "00001" && result.get<double>("loss") > 1;
}

// Stoppers that a test feeds with results.
class Fed {
 public:
  explicit Fed(Stop stop) : description_(std::move(stop)), stoppers_(description_) {}

  Verdict feed(TrialIndex index, double loss) { return feed(index, Metrics{{"loss", loss}}); }
  Verdict feed(TrialIndex index, const Metrics& result) {
    Trial trial;
    trial.index = index;
    trial.id = "0000" + std::to_string(index);
    const Value state = stoppers_.save();  // restored before each result, because a restore must not change decisions
    stoppers_ = Stoppers(description_);
    stoppers_.load(state);
    return stoppers_.on_result(trial, result);
  }
  void forget(TrialIndex trial) { stoppers_.forget(trial); }

 private:
  Stop description_;
  Stoppers stoppers_;
};

TEST(Stoppers, AThresholdIsReachedFromItsSide) {
  Fed fed(Stop{{"accuracy", 0.9}, {"eval/loss", at_most(0.1)}});
  EXPECT_EQ(fed.feed(0, {{"accuracy", 0.89}, {"eval", {{"loss", 0.11}}}}), Verdict::go_on);
  EXPECT_EQ(fed.feed(0, {{"accuracy", 0.9}}), Verdict::stop_trial);
  EXPECT_EQ(fed.feed(0, {{"eval", {{"loss", 0.1}}}}), Verdict::stop_trial);
  EXPECT_EQ(fed.feed(0, {{"accuracy", std::numeric_limits<double>::quiet_NaN()}}), Verdict::go_on);
}

TEST(Stoppers, ResultsAreCountedForEachTrial) {
  Fed fed(MaximumIterationStopper{3});
  EXPECT_EQ(fed.feed(0, 1), Verdict::go_on);
  EXPECT_EQ(fed.feed(1, 1), Verdict::go_on);
  EXPECT_EQ(fed.feed(0, 1), Verdict::go_on);
  EXPECT_EQ(fed.feed(0, 1), Verdict::stop_trial);
  EXPECT_EQ(fed.feed(1, 1), Verdict::go_on);
  fed.forget(0);
  EXPECT_EQ(fed.feed(0, 1), Verdict::go_on);
}

TEST(Stoppers, ATrialOnAPlateauIsStopped) {
  Fed fed(TrialPlateauStopper{.metric = "loss", .std = 0.1, .num_results = 3, .grace_period = 4});
  for (const double loss : {1.0, 1.0, 1.0}) EXPECT_EQ(fed.feed(0, loss), Verdict::go_on) << "within the grace period";
  EXPECT_EQ(fed.feed(0, 2), Verdict::go_on);
  EXPECT_EQ(fed.feed(0, 2), Verdict::go_on);
  EXPECT_EQ(fed.feed(0, {{"other", 1}}), Verdict::go_on) << "without the metric";
  EXPECT_EQ(fed.feed(0, 2.1), Verdict::stop_trial);
  EXPECT_EQ(fed.feed(1, 2), Verdict::go_on);
}

TEST(Stoppers, APlateauCountsOnlyBeyondItsThreshold) {
  Fed fed(TrialPlateauStopper{
      .metric = "loss", .std = 0.1, .num_results = 2, .grace_period = 0, .metric_threshold = 0.5, .mode = Mode::min});
  EXPECT_EQ(fed.feed(0, 1), Verdict::go_on);
  EXPECT_EQ(fed.feed(0, 1), Verdict::go_on);
  EXPECT_EQ(fed.feed(0, 0.5), Verdict::go_on);
  EXPECT_EQ(fed.feed(0, 0.5), Verdict::stop_trial);
}

TEST(Stoppers, AllAreStoppedWhenTheBestResultsStayTheSame) {
  Fed fed(ExperimentPlateauStopper{.metric = "loss", .std = 0.01, .top = 2, .mode = Mode::min, .patience = 2});
  EXPECT_EQ(fed.feed(0, 1), Verdict::go_on);
  EXPECT_EQ(fed.feed(1, 0.5), Verdict::go_on);
  EXPECT_EQ(fed.feed(2, 0.5), Verdict::go_on) << "the first result of the plateau";
  EXPECT_EQ(fed.feed(0, 0.1), Verdict::go_on) << "it is left";
  EXPECT_EQ(fed.feed(1, 0.1), Verdict::go_on);
  EXPECT_EQ(fed.feed(2, 7), Verdict::stop_all) << "the second result of the next one";
}

TEST(Stoppers, AFunctionDecidesByTrialAndResult) {
  const Stoppers stoppers(stop_function<lost_patience>());
  const auto ends = [&](TrialIndex index, const Metrics& result) {
    Trial trial;
    trial.index = index;
    trial.id = "0000" + std::to_string(index);
    return stoppers.ask_functions(trial, result);
  };
  EXPECT_FALSE(ends(0, {{"loss", 2}}));
  EXPECT_FALSE(ends(1, {{"loss", 1}}));
  EXPECT_TRUE(ends(1, {{"loss", 2}}));
  EXPECT_THROW(ends(1, {{"fault", true}}), std::runtime_error);
}

TEST(Stoppers, OfSeveralEachSeesEverything) {
  Fed fed(any_of(Stop{{"loss", at_most(0.1)}}, MaximumIterationStopper{3}, TimeoutStopper{Seconds(5)},
                 TimeoutStopper{Seconds(2)}));
  EXPECT_EQ(fed.feed(0, 0.1), Verdict::stop_trial);
  EXPECT_EQ(fed.feed(0, 1), Verdict::go_on);
  EXPECT_EQ(fed.feed(0, 1), Verdict::stop_trial) << "the third result";
  const Stoppers stoppers(any_of(TimeoutStopper{Seconds(5)}, TimeoutStopper{Seconds(2)}, Stop{{"loss", 1}}));
  EXPECT_EQ(stoppers.timeout(), Seconds(2));
  EXPECT_THAT(stoppers.metrics(), ElementsAre("loss"));
}

}  // namespace
}  // namespace cadre::tune
