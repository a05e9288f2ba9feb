#include "cadre/tune/schedulers/median_stopping_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/json.h"
#include "support/experiment_driver.h"
#include "support/message_of.h"
#include "tune/options/options.h"

namespace cadre::tune {
namespace {

using test_support::Driver;
using test_support::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

MedianStoppingRule with_two() {
  return {.time_attr = "training_iteration", .grace_period = 2, .min_samples_required = 2};
}

TunerOptions median(std::int64_t trials, MedianStoppingRule scheduler = with_two()) {
  scheduler.metric = "score";
  if (!scheduler.mode) scheduler.mode = Mode::max;
  return {.tune_config = {.num_samples = trials, .scheduler = std::move(scheduler)}};
}

Metrics at(double time, double score) { return {{"training_iteration", time}, {"score", score}}; }

TEST(MedianStoppingRule, ATrialIsComparedByItsBestWithTheMedianOfTheAveragesOfOthers) {
  Driver driver(median(4), 4);
  for (const double time : {1, 2, 3}) {
    EXPECT_THAT(driver.report(0, at(time, time)), IsEmpty());  // the average from 2 to 3 is 2.5
    EXPECT_THAT(driver.report(1, at(time, 5)), IsEmpty());
  }
  EXPECT_THAT(driver.report(2, at(3, 3.74)), ElementsAre("stop 2"));
  EXPECT_EQ(driver.trial(2).status, TrialStatus::stopped);
  EXPECT_THAT(driver.report(3, at(2, 3.5)), IsEmpty());  // equals the median of 2 and 5, up to 2
  EXPECT_EQ(driver.experiment().scheduler_state(), "Using MedianStoppingRule: num_stopped=1.");
}

TEST(MedianStoppingRule, ABestValueOfTheGracePeriodCounts) {
  Driver driver(median(3), 3);
  driver.report(0, at(2, 1));
  driver.report(1, at(2, 1));
  EXPECT_THAT(driver.report(2, at(1, 2)), IsEmpty());
  EXPECT_THAT(driver.report(2, at(2, 0)), IsEmpty());
}

TEST(MedianStoppingRule, EndedTrialsAreComparedWithAndThoseBehindAreNot) {
  Driver driver(median(4), 4);
  driver.report(0, at(3, 1));
  driver.feed(FunctionReturned{0, 1});
  driver.report(1, at(2, 9));
  EXPECT_THAT(driver.report(2, at(3, 0)), IsEmpty()) << "only trial 0 has come so far";
  driver.report(1, at(3, 1));
  EXPECT_THAT(driver.report(3, at(3, 0.5)), ElementsAre("stop 3")) << "the median of 1, 5 and 0";
}

TEST(MedianStoppingRule, SmallIsGoodIfTheModeSaysSo) {
  MedianStoppingRule scheduler = with_two();
  scheduler.mode = Mode::min;
  Driver driver(median(3, scheduler), 3);
  driver.report(0, at(2, 1));
  driver.report(1, at(2, 1));
  EXPECT_THAT(driver.report(2, at(2, 1.5)), ElementsAre("stop 2"));
}

TEST(MedianStoppingRule, AnAverageThatIsNotFiniteDoesNotCount) {
  Driver driver(median(3), 3);
  driver.report(0, at(2, std::numeric_limits<double>::quiet_NaN()));
  driver.report(1, at(2, 1));
  EXPECT_THAT(driver.report(2, at(2, 0)), IsEmpty());
}

TEST(MedianStoppingRule, AResultWhoseTimeIsNoFiniteNumberChangesNothing) {
  Driver driver(median(3), 3);
  driver.report(0, at(2, 1));
  driver.report(1, at(2, 1));
  for (const double time : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    EXPECT_THAT(driver.report(2, at(time, 0)), IsEmpty());
  EXPECT_THAT(driver.report(2, at(2, 0)), ElementsAre("stop 2"));
}

TEST(MedianStoppingRule, WithTooFewToCompareATrialMakesRoomForOthers) {
  MedianStoppingRule scheduler = with_two();
  scheduler.min_time_slice = 2;
  Driver driver(median(3, scheduler), 1);
  EXPECT_THAT(driver.report(0, at(1, 1)), IsEmpty()) << "the grace period";
  EXPECT_THAT(driver.report(0, at(2, 1)), ElementsAre("pause 0", "launch 1"));
  EXPECT_THAT(driver.report(1, at(2, 1)), ElementsAre("pause 1", "launch 2"));
  EXPECT_THAT(driver.report(2, at(2, 0)), ElementsAre("stop 2"));
  EXPECT_THAT(driver.feed(FunctionReturned{2, 1}), ElementsAre("resume 0"));
  EXPECT_THAT(driver.report(0, at(3, 1)), IsEmpty()) << "its slice";
  EXPECT_THAT(driver.report(0, at(5, 1)), ElementsAre("pause 0", "resume 0")) << "of those that wait the first goes on";
}

TEST(MedianStoppingRule, WithoutHardStopABadTrialIsPausedOnce) {
  MedianStoppingRule scheduler = with_two();
  scheduler.hard_stop = false;
  Driver driver(median(3, scheduler), 3);
  driver.report(0, at(2, 1));
  driver.report(1, at(2, 1));
  EXPECT_THAT(driver.report(2, at(2, 0)), ElementsAre("pause 2", "resume 2"));
  EXPECT_THAT(driver.report(2, at(3, 0)), IsEmpty());
}

TEST(MedianStoppingRule, TheStateIsReadBack) {
  const TunerOptions options = median(3);
  Driver first(options, 3);
  first.report(0, at(2, std::numeric_limits<double>::infinity()));
  first.report(0, at(3, 1));
  first.report(1, at(2, 1));
  Experiment again(Trainable("f"), options);
  again.load(base::parse_json(base::to_json(first.experiment().save().dict()), "the state"),
             [&](TrialIndex trial) { return first.experiment().save_trial(trial); });
  EXPECT_EQ(to_json(again.save()), to_json(first.experiment().save()));
}

TEST(MedianStoppingRule, BadOptionsAreNamed) {
  const auto faults = [](const MedianStoppingRule& scheduler) {
    std::vector<std::string> notes;
    return message_of<InvalidArgument>(
        [&] { check_options(Trainable("f"), resolve(Trainable("f"), median(1, scheduler), notes)); });
  };
  EXPECT_THAT(faults({.grace_period = -1}), HasSubstr("grace_period: it is -1; it must be 0 or more"));
  EXPECT_THAT(faults({.min_samples_required = 0}), HasSubstr("min_samples_required: it is 0; it must be at least 1"));
  EXPECT_THAT(faults({.min_time_slice = -1}), HasSubstr("min_time_slice: it is -1; it must be 0 or more"));
}

}  // namespace
}  // namespace cadre::tune
