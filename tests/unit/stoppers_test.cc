// Cadre's stoppers, and several together.
#include "cadre/tune/stoppers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "cadre/error.h"
#include "tune/stoppers/stopper_set.h"
#include "tune/trial.h"

namespace cadre::tune {
namespace {

using ::testing::ElementsAre;

bool lost_patience(const std::string& trial_id, const Metrics& result) {
  if (result.contains("fault")) throw std::runtime_error("no opinion");
  return trial_id == "00001" && result.get<double>("loss") > 1;
}

// Stoppers that a test feeds with results.
class Fed {
 public:
  explicit Fed(Stop stop) : stop_(std::move(stop)), stoppers_(stop_, {}) {}

  // Returns true if the trial ends.
  bool feed(TrialIndex index, double loss) { return feed(index, Metrics{{"loss", loss}}); }
  bool feed(TrialIndex index, const Metrics& result) {
    restore();
    return stoppers_.on_result(view(index), result);
  }
  bool feed_recorded(TrialIndex index, const Metrics& result) {
    return stoppers_.on_result_recorded(view(index), result);
  }
  void end(TrialIndex index) { stoppers_.on_trial_end(view(index)); }
  // Results that led to the state of the trials that are fed next.
  void set_num_results(std::int64_t count) { trial_.step = count; }
  bool stops_all() {
    restore();
    return stoppers_.stop_all().has_value();
  }
  const StopperSet& stoppers() const { return stoppers_; }

 private:
  // A restore must not change decisions.
  void restore() {
    const Value state = stoppers_.save();
    stoppers_ = StopperSet(stop_, {});
    stoppers_.load(state);
  }
  TrialView view(TrialIndex index) {
    trial_.index = index;
    trial_.id = "0000" + std::to_string(index);
    return {trial_, checkpoints_};
  }

  Stop stop_;
  StopperSet stoppers_;
  Trial trial_ = {};
  checkpoint::CheckpointRegistry checkpoints_{CheckpointConfig()};
};

TEST(Stoppers, AThresholdIsReachedFromItsSide) {
  Fed fed(Stop{{"accuracy", at_least(0.9)}, {"eval/loss", at_most(0.1)}});
  EXPECT_FALSE(fed.feed(0, {{"accuracy", 0.89}, {"eval", {{"loss", 0.11}}}}));
  EXPECT_TRUE(fed.feed(0, {{"accuracy", 0.9}}));
  EXPECT_TRUE(fed.feed(0, {{"eval", {{"loss", 0.1}}}}));
  EXPECT_FALSE(fed.feed(0, {{"accuracy", std::numeric_limits<double>::quiet_NaN()}}));
}

TEST(Stoppers, ResultsAreCountedForEachTrial) {
  Fed fed(MaximumIterationStopper{3});
  EXPECT_FALSE(fed.feed(0, 1));
  EXPECT_FALSE(fed.feed(1, 1));
  EXPECT_FALSE(fed.feed(0, 1));
  EXPECT_TRUE(fed.feed(0, 1));
  EXPECT_FALSE(fed.feed(1, 1));
  fed.end(0);
  EXPECT_FALSE(fed.feed(0, 1));
}

TEST(Stoppers, ResultsFromBeforeAStopperCountForIt) {
  Fed fed(MaximumIterationStopper{4});
  fed.set_num_results(2);
  EXPECT_FALSE(fed.feed(0, 1));
  fed.set_num_results(9);  // it continues from another trial
  EXPECT_TRUE(fed.feed(0, 1));
}

TEST(Stoppers, ATrialOnAPlateauIsStopped) {
  Fed fed(TrialPlateauStopper{.metric = "loss", .std = 0.1, .num_results = 3, .grace_period = 4});
  for (const double loss : {1.0, 1.0, 1.0}) EXPECT_FALSE(fed.feed(0, loss)) << "within the grace period";
  EXPECT_FALSE(fed.feed(0, 2));
  EXPECT_FALSE(fed.feed(0, 2));
  EXPECT_FALSE(fed.feed(0, {{"other", 1}})) << "without the metric";
  EXPECT_TRUE(fed.feed(0, 2.1));
  EXPECT_FALSE(fed.feed(1, 2));
}

TEST(Stoppers, APlateauCountsOnlyBeyondItsThreshold) {
  Fed fed(TrialPlateauStopper{
      .metric = "loss", .std = 0.1, .num_results = 2, .grace_period = 0, .metric_threshold = 0.5, .mode = Mode::min});
  EXPECT_FALSE(fed.feed(0, 1));
  EXPECT_FALSE(fed.feed(0, 1));
  EXPECT_FALSE(fed.feed(0, 0.5));
  EXPECT_TRUE(fed.feed(0, 0.5));
}

TEST(Stoppers, AllAreStoppedWhenTheBestResultsStayTheSame) {
  Fed fed(ExperimentPlateauStopper{.metric = "loss", .std = 0.01, .top = 2, .mode = Mode::min, .patience = 2});
  const auto stops_all_after = [&](TrialIndex trial, double loss) {
    EXPECT_FALSE(fed.feed(trial, loss)) << "no single trial is stopped";
    return fed.stops_all();
  };
  EXPECT_FALSE(stops_all_after(0, 1));
  EXPECT_FALSE(stops_all_after(1, 0.5));
  EXPECT_FALSE(stops_all_after(2, 0.5)) << "the first result of the plateau";
  EXPECT_FALSE(stops_all_after(0, 0.1)) << "it is left";
  EXPECT_FALSE(stops_all_after(1, 0.1));
  EXPECT_TRUE(stops_all_after(2, 7)) << "the second result of the next one";
}

// A mean of ten times 0.1 by sums is not 0.1.
TEST(Stoppers, EqualResultsAreAPlateauOfNoDeviation) {
  Fed fed(ExperimentPlateauStopper{.metric = "loss", .std = 0, .top = 10, .mode = Mode::min});
  for (int result = 0; result < 9; ++result) fed.feed(0, 0.1);
  EXPECT_FALSE(fed.stops_all());
  fed.feed(0, 0.1);
  EXPECT_TRUE(fed.stops_all());
}

TEST(Stoppers, AFunctionDecidesByTrialAndResult) {
  Fed fed(fn<lost_patience>);
  EXPECT_FALSE(fed.feed(1, {{"loss", 2}})) << "its answers are recorded: it is asked apart from others";
  EXPECT_FALSE(fed.feed_recorded(0, {{"loss", 2}}));
  EXPECT_FALSE(fed.feed_recorded(1, {{"loss", 1}}));
  EXPECT_TRUE(fed.feed_recorded(1, {{"loss", 2}}));
  EXPECT_THROW(fed.feed_recorded(1, {{"fault", true}}), std::runtime_error);
}

TEST(Stoppers, OfSeveralEachSeesEverything) {
  Fed fed(any_of(Stop{{"loss", at_most(0.1)}}, MaximumIterationStopper{3}, TimeoutStopper{Seconds(5)},
                 TimeoutStopper{Seconds(2)}, ExperimentPlateauStopper{.metric = "score", .mode = Mode::max}));
  EXPECT_TRUE(fed.feed(0, 0.1));
  EXPECT_FALSE(fed.feed(0, 1));
  EXPECT_TRUE(fed.feed(0, 1)) << "the third result";
  EXPECT_EQ(fed.stoppers().timeout(), Seconds(2));
  EXPECT_THAT(fed.stoppers().metrics(), ElementsAre("loss", "score"));
}

TEST(Stoppers, AStateOfOthersIsRefused) {
  const StopperSet one(MaximumIterationStopper{3}, {});
  StopperSet two(any_of(MaximumIterationStopper{3}, MaximumIterationStopper{4}), {});
  EXPECT_THROW(two.load(one.save()), InvalidArgument);
}

}  // namespace
}  // namespace cadre::tune
