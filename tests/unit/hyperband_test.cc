#include "cadre/tune/schedulers/hyperband.h"

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
using ::testing::UnorderedElementsAre;

// Brackets of 4 trials with milestones 1, 2 and 4, of 3 with 2 and 4, and of 3 with 4.
TunerOptions hyperband(std::int64_t trials, HyperBandScheduler scheduler = {.max_t = 4, .reduction_factor = 2}) {
  scheduler.metric = "score";
  if (!scheduler.mode) scheduler.mode = Mode::max;
  return {.tune_config = {.num_samples = trials, .scheduler = std::move(scheduler)}};
}

Metrics at(double time, double score) { return {{"training_iteration", time}, {"score", score}}; }

TEST(HyperBand, ABracketWaitsForAllItsTrialsAndTheBestHalfContinue) {
  Driver driver(hyperband(4), 4);
  EXPECT_THAT(driver.report(0, at(1, 0.1)), ElementsAre("pause 0"));
  EXPECT_THAT(driver.report(1, at(1, 0.4)), ElementsAre("pause 1"));
  EXPECT_THAT(driver.report(2, at(1, 0.3)), ElementsAre("pause 2"));
  EXPECT_THAT(driver.report(3, at(1, 0.2)), UnorderedElementsAre("stop 0", "stop 3", "resume 1", "resume 2"));
  EXPECT_EQ(driver.trial(0).status, TrialStatus::stopped);
  EXPECT_THAT(driver.report(1, at(2, 0.4)), ElementsAre("pause 1"));
  EXPECT_THAT(driver.report(2, at(2, 0.5)), ElementsAre("stop 1"));
  EXPECT_THAT(driver.report(2, at(3, 0.5)), IsEmpty());
  EXPECT_THAT(driver.report(2, at(4, 0.5)), ElementsAre("end 2"));
  EXPECT_EQ(driver.experiment().scheduler_state(), "HyperBand: 3 stopped early");
}

TEST(HyperBand, AResultWhoseTimeIsNoFiniteNumberChangesNothing) {
  Driver driver(hyperband(4), 4);
  for (const double time : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    EXPECT_THAT(driver.report(0, at(time, 0.1)), IsEmpty());
  EXPECT_THAT(driver.report(0, at(1, 0.1)), ElementsAre("pause 0"));
}

TEST(HyperBand, ATrialThatWaitsLeavesItsPlaceToTheNextOfTheBracket) {
  Driver driver(hyperband(4), 1);
  EXPECT_THAT(driver.report(0, at(1, 0.1)), ElementsAre("pause 0", "launch 1"));
  EXPECT_THAT(driver.report(1, at(1, 0.4)), ElementsAre("pause 1", "launch 2"));
  EXPECT_THAT(driver.report(2, at(1, 0.3)), ElementsAre("pause 2", "launch 3"));
  EXPECT_THAT(driver.report(3, at(1, 0.2)), ElementsAre("stop 0", "stop 3"));
  EXPECT_THAT(driver.feed(FunctionReturned{3, 1}), ElementsAre("resume 1"));
}

TEST(HyperBand, TheNextBracketComparesLater) {
  Driver driver(hyperband(10), 10);
  for (const TrialIndex trial : {4, 5, 6}) EXPECT_THAT(driver.report(trial, at(1, 0.0)), IsEmpty());
  EXPECT_THAT(driver.report(4, at(2, 0.1)), ElementsAre("pause 4"));
  EXPECT_THAT(driver.report(5, at(2, 0.2)), ElementsAre("pause 5"));
  EXPECT_THAT(driver.report(6, at(2, 0.3)), UnorderedElementsAre("stop 4", "resume 5"));
  EXPECT_THAT(driver.report(9, at(3, 0.0)), IsEmpty());
  EXPECT_THAT(driver.report(9, at(4, 0.0)), ElementsAre("end 9")) << "the last bracket never compares";
  EXPECT_EQ(driver.experiment().scheduler_state(),
            "HyperBand: 1 stopped early; brackets 4 of 4 trials up to 1, 2 of 3 trials up to 4, 2 of 3 trials up to 4");
}

TEST(HyperBand, ABracketThatNoTrialWillFillComparesThoseThatItHas) {
  Driver driver(hyperband(3), 3);
  driver.report(0, at(1, 0.1));
  driver.report(1, at(1, 0.2));
  EXPECT_THAT(driver.report(2, at(1, 0.3)), UnorderedElementsAre("stop 0", "resume 1"));
}

TEST(HyperBand, ATrialThatEndsOtherwiseIsNotWaitedFor) {
  Driver driver(hyperband(4), 4);
  driver.report(0, at(1, 0.1));
  driver.report(1, at(1, 0.2));
  driver.report(2, at(1, 0.3));
  EXPECT_THAT(driver.feed(FunctionThrew{3, 1, "no"}), UnorderedElementsAre("fail 3", "stop 0", "resume 1", "resume 2"));
  driver.report(1, at(2, 0.1));
  EXPECT_THAT(driver.feed(FunctionReturned{2, 1}), UnorderedElementsAre("end 2", "resume 1"));
}

TEST(HyperBand, NanIsWorstAndOfEqualTrialsTheEarlierAreBetter) {
  Driver driver(hyperband(4), 4);
  driver.report(0, at(1, std::numeric_limits<double>::quiet_NaN()));
  driver.report(1, at(1, 0.2));
  driver.report(2, at(1, 0.2));
  EXPECT_THAT(driver.report(3, at(1, 0.2)), UnorderedElementsAre("stop 0", "stop 3", "resume 1", "resume 2"));
}

TEST(HyperBand, AStepOverSeveralMilestonesCountsAtEach) {
  Driver driver(hyperband(4), 4);
  driver.report(0, at(3, 0.4));
  driver.report(1, at(3, 0.3));
  driver.report(2, at(3, 0.2));
  EXPECT_THAT(driver.report(3, at(1, 0.1)), UnorderedElementsAre("stop 1", "stop 2", "stop 3", "resume 0"));
}

TEST(HyperBand, SmallIsGoodIfTheModeSaysSo) {
  Driver driver(hyperband(3, {.mode = Mode::min, .max_t = 4, .reduction_factor = 2}), 3);
  driver.report(0, at(1, 0.1));
  driver.report(1, at(1, 0.2));
  EXPECT_THAT(driver.report(2, at(1, 0.3)), UnorderedElementsAre("stop 2", "resume 0", "resume 1"));
}

TEST(HyperBand, ResultsWithoutMetricOrTimeChangeNothing) {
  Driver driver(hyperband(1), 1);
  EXPECT_THAT(driver.report(0, {{"score", 1}}), IsEmpty());
  EXPECT_THAT(driver.report(0, {{"training_iteration", 4}}), IsEmpty());
}

TEST(HyperBand, TheStateIsReadBack) {
  const TunerOptions options = hyperband(6);
  Driver first(options, 3);
  first.report(0, at(1, 0.1));
  first.report(1, at(1, std::numeric_limits<double>::quiet_NaN()));
  first.report(2, at(1, 0.3));
  Experiment again(Trainable("f"), options);
  again.load(base::parse_json(base::to_json(first.experiment().save().dict()), "the state"),
             [&](TrialIndex trial) { return first.experiment().save_trial(trial); });
  EXPECT_EQ(again.scheduler_state(), first.experiment().scheduler_state());
  Actions actions;
  const ResultReported last{3, 1, {1, at(1, 0.2), {}}};
  again.handle(last, actions);
  first.feed(last);
  EXPECT_EQ(to_json(again.save()), to_json(first.experiment().save()));
  EXPECT_EQ(first.trial(1).status, TrialStatus::stopped);
}

TEST(HyperBand, BadOptionsAreNamed) {
  const auto faults = [](const HyperBandScheduler& scheduler) {
    std::vector<std::string> notes;
    return message_of<InvalidArgument>(
        [&] { check_options(Trainable("f"), resolve(Trainable("f"), hyperband(1, scheduler), notes)); });
  };
  EXPECT_THAT(faults({.max_t = 0.5}), HasSubstr("scheduler (HyperBandScheduler) max_t: it is 0.5; it must be from 1"));
  EXPECT_THAT(faults({.reduction_factor = 1}), HasSubstr("reduction_factor: it is 1; it must be 1.1 or more"));
  EXPECT_THAT(faults({.time_attr = ""}), HasSubstr("time_attr: say what max_t counts"));
}

}  // namespace
}  // namespace cadre::tune
