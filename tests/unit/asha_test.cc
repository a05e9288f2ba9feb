#include "cadre/tune/schedulers/asha.h"

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
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TunerOptions asha(std::int64_t trials, ASHAScheduler scheduler = {}) {
  scheduler.metric = "score";
  if (!scheduler.mode) scheduler.mode = Mode::max;
  return {.tune_config = {.num_samples = trials, .scheduler = std::move(scheduler)}};
}

// Rungs at 1, 2, 4 and 8.
ASHAScheduler halving() { return {.max_t = 8, .reduction_factor = 2}; }

Metrics at(double time, double score) { return {{"training_iteration", time}, {"score", score}}; }

TEST(Asha, ATrialBelowTheBestOfItsRungStops) {
  Driver driver(asha(4, halving()), 4);
  EXPECT_THAT(driver.report(0, at(1, 0.5)), IsEmpty());  // the first at a rung always continues
  EXPECT_THAT(driver.report(1, at(1, 0.4)), ElementsAre("stop 1"));
  EXPECT_THAT(driver.report(2, at(1, 0.6)), IsEmpty());
  EXPECT_THAT(driver.report(3, at(1, 0.5)), IsEmpty());  // equal to the median of 0.4, 0.5 and 0.6
  EXPECT_EQ(driver.trial(1).status, TrialStatus::stopped);
  EXPECT_THAT(driver.report(2, at(2, 0.1)), IsEmpty());
  EXPECT_THAT(driver.report(0, at(2, 0.0)), ElementsAre("stop 0"));
  EXPECT_EQ(driver.experiment().scheduler_state(), "ASHA: 2 stopped early; rungs 1: 0.5, 2: 0.05");
}

TEST(Asha, SmallIsGoodIfTheModeSaysSo) {
  ASHAScheduler scheduler = halving();
  scheduler.mode = Mode::min;
  Driver driver(asha(3, scheduler), 3);
  driver.report(0, at(1, 0.5));
  EXPECT_THAT(driver.report(1, at(1, 0.6)), ElementsAre("stop 1"));
  EXPECT_THAT(driver.report(2, at(1, 0.4)), IsEmpty());
}

TEST(Asha, AResultBetweenRungsAndOneWithoutAMetricChangeNothing) {
  Driver driver(asha(2, halving()), 2);
  driver.report(0, at(4, 1));
  driver.report(1, at(4, 2));
  EXPECT_THAT(driver.report(1, at(5, 0)), IsEmpty());
  EXPECT_THAT(driver.report(1, {{"training_iteration", 8}}), IsEmpty());
  EXPECT_THAT(driver.report(1, {{"score", -1}}), IsEmpty());
}

TEST(Asha, AResultWhoseTimeIsNoFiniteNumberChangesNothing) {
  Driver driver(asha(2, halving()), 2);
  driver.report(0, at(4, 1));
  for (const double time : {kNan, std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(driver.report(0, at(time, 1)), IsEmpty());
    EXPECT_THAT(driver.report(1, at(time, 0)), IsEmpty());
  }
  EXPECT_THAT(driver.report(1, at(4, 0)), ElementsAre("stop 1"));
}

TEST(Asha, ASkippedRungIsNotCounted) {
  Driver driver(asha(3, halving()), 3);
  driver.report(0, at(1, 1));
  EXPECT_THAT(driver.report(1, at(3, 0)), IsEmpty());  // the first at rung 2; rung 1 is behind it
  EXPECT_THAT(driver.report(2, at(1, 0.5)), ElementsAre("stop 2"));
}

TEST(Asha, ATrialAtMaxTHasEndedAndIsNotStoppedEarly) {
  Driver driver(asha(1, halving()), 1);
  EXPECT_THAT(driver.report(0, at(8, 1)), ElementsAre("end 0"));
  EXPECT_EQ(driver.trial(0).status, TrialStatus::terminated);
}

TEST(Asha, LastTrialsGoOnIfTheyAreNotToBeStopped) {
  ASHAScheduler scheduler = halving();
  scheduler.stop_last_trials = false;
  Driver driver(asha(2, scheduler), 2);
  driver.report(0, at(8, 1));
  EXPECT_THAT(driver.report(0, at(9, 0)), IsEmpty());
  EXPECT_THAT(driver.report(1, at(8, 0)), ElementsAre("stop 1"));
}

TEST(Asha, NanIsTheWorstValue) {
  Driver driver(asha(4, halving()), 4);
  EXPECT_THAT(driver.report(0, at(1, kNan)), IsEmpty());
  EXPECT_THAT(driver.report(1, at(1, -5)), IsEmpty());
  EXPECT_THAT(driver.report(2, at(1, kNan)), ElementsAre("stop 2"));
  EXPECT_THAT(driver.report(3, at(1, -6)), ElementsAre("stop 3"));
}

TEST(Asha, TheTopRungIsThereWherePowersRoundBadly) {
  // log(243) / log(3) is 4.999...
  Driver driver(asha(2, {.max_t = 243, .reduction_factor = 3, .stop_last_trials = false}), 2);
  driver.report(0, at(243, 1));
  EXPECT_THAT(driver.report(1, at(243, 0)), ElementsAre("stop 1"));
  EXPECT_THAT(driver.experiment().scheduler_state(), HasSubstr("rungs 243: "));
}

TEST(Asha, TrialsAreDrawnIntoBracketsAndKeepThem) {
  const auto state_of = [](std::uint64_t seed) {
    TunerOptions options = asha(40, {.max_t = 8, .reduction_factor = 2, .brackets = 3});
    options.tune_config.seed = seed;
    Driver driver(options, 40);
    std::int64_t stopped = 0;
    for (TrialIndex trial = 0; trial < 40; ++trial)
      stopped += static_cast<std::int64_t>(driver.report(trial, at(1, -double(trial))).size());
    return stopped;  // those of the bracket that has rung 1, but for the first of them
  };
  EXPECT_GT(state_of(1), 15);  // two thirds of the trials
  EXPECT_LT(state_of(1), 39);
  EXPECT_EQ(state_of(1), state_of(1));
}

TEST(Asha, ATrialThatBeginsAnewIsComparedAgain) {
  TunerOptions options = asha(2, halving());
  options.run_config.failure_config.max_failures = 1;
  Driver driver(options, 2);
  driver.report(0, at(1, 1));
  driver.report(1, at(1, 2));
  driver.feed(FunctionThrew{1, 1, "bad luck"});
  driver.feed(WorkerEnded{1, 1, {}});
  ASSERT_EQ(driver.trial(1).status, TrialStatus::running);
  EXPECT_THAT(driver.feed(ResultReported{1, 2, {2, at(1, 0), {}}}), IsEmpty());  // it has been at this rung
}

// ---- Promotion

ASHAScheduler promoting() {
  ASHAScheduler scheduler = halving();
  scheduler.promote = true;
  return scheduler;
}

TEST(Asha, WithPromotionTheBestOfARungContinueAndOthersBegin) {
  Driver driver(asha(4, promoting()), 1);
  EXPECT_THAT(driver.decided, ElementsAre("launch 0"));
  EXPECT_THAT(driver.report(0, at(1, 0.1)), ElementsAre("pause 0", "launch 1"));  // one of one is not the best half
  EXPECT_THAT(driver.report(1, at(1, 0.3)), ElementsAre("pause 1", "resume 1"));
  EXPECT_THAT(driver.report(1, at(2, 0.3)), ElementsAre("pause 1", "launch 2"));
  EXPECT_THAT(driver.report(2, at(1, 0.2)), ElementsAre("pause 2", "launch 3"));  // one of three has continued
  EXPECT_THAT(driver.report(3, at(1, 0.0)), ElementsAre("pause 3", "resume 2"));  // two of four may
  // Trial 1 is the better one at the next rung, and nobody else can continue after it.
  EXPECT_THAT(driver.report(2, at(2, 0.2)), ElementsAre("pause 2", "resume 1"));
  EXPECT_THAT(driver.report(1, at(4, 0.3)), UnorderedElementsAre("stop 0", "stop 1", "stop 2", "stop 3"));
  EXPECT_EQ(driver.trial(1).status, TrialStatus::stopped);
}

TEST(Asha, WithPromotionATrialThatBeginsAnewWithTheSameScoreCountsOnce) {
  Driver driver(asha(4, promoting()), 4);  // the last one has not reported
  for (TrialIndex trial = 0; trial < 3; ++trial) driver.report(trial, at(1, 0.4 - 0.1 * trial));
  EXPECT_EQ(driver.trial(0).status, TrialStatus::running) << "one of three continues";
  driver.feed(FunctionThrew{0, 1, "no"});
  driver.feed(ControllerStarted{.resources = {.cpus = 4}, .errored = ControllerStarted::Errored::restart});
  ASSERT_EQ(driver.trial(0).status, TrialStatus::running);
  driver.report(0, at(1, 0.4));
  EXPECT_EQ(driver.trial(0).status, TrialStatus::running);
  EXPECT_NE(driver.trial(1).status, TrialStatus::running) << "there are still three";
}

TEST(Asha, WithPromotionEqualScoresDoNotAllContinue) {
  Driver driver(asha(4, promoting()), 4);
  for (TrialIndex trial = 0; trial < 3; ++trial) driver.report(trial, at(1, 0.5));
  driver.report(3, at(1, 0.5));
  EXPECT_EQ(driver.trial(0).status, TrialStatus::running);
  EXPECT_EQ(driver.trial(1).status, TrialStatus::running);
  EXPECT_EQ(driver.trial(2).status, TrialStatus::paused);
  EXPECT_EQ(driver.trial(3).status, TrialStatus::paused);
}

TEST(Asha, WithPromotionTheLastTrialsAreStoppedWhenTheLastOneThatRanHasFailed) {
  Driver driver(asha(3, promoting()), 3);
  driver.report(0, at(1, 0.1));
  driver.report(1, at(1, kNan));
  EXPECT_EQ(driver.trial(0).status, TrialStatus::running);  // the better one of two
  driver.feed(FunctionThrew{0, 1, "bad luck"});
  driver.feed(WorkerEnded{0, 1, {}});
  EXPECT_EQ(driver.trial(1).status, TrialStatus::paused);  // trial 2 runs
  driver.feed(FunctionReturned{2, 1});
  EXPECT_EQ(driver.trial(1).status, TrialStatus::stopped);
}

// NaN counts as minus infinity there, which a snapshot must hold.
TEST(Asha, WithPromotionTheStateOfATrialThatHasDivergedIsReadBack) {
  Driver driver(asha(3, promoting()), 3);
  driver.report(0, at(1, kNan));
  const std::string saved = to_json(driver.experiment().save());
  Experiment again = driver.experiment().anew();
  again.load(base::parse_json(saved, "the state"), [](TrialIndex) { return Value(); });
  EXPECT_EQ(to_json(again.save()), saved);
}

TEST(Asha, ATimeAttributeThatResultsLackIsWarnedAboutOnce) {
  ASHAScheduler scheduler = halving();
  scheduler.time_attr = "epoch";
  Driver driver(asha(2, scheduler), 2);
  driver.report(0, at(1, 0.5));
  const std::vector<const Say*> said = driver.all<Say>();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0]->text,
            "Warning: the first result has no \"epoch\", which is needed by the scheduler. It has: training_iteration, "
            "score");
  driver.report(1, at(1, 0.5));
  EXPECT_THAT(driver.all<Say>(), IsEmpty());
}

// ---- Options

TEST(Asha, BadOptionsAreNamedBeforeAnythingRuns) {
  const auto fault = [](ASHAScheduler scheduler) {
    const TunerOptions options = asha(1, std::move(scheduler));
    return test_support::message_of<InvalidArgument>([&] { check_options({}, options); });
  };
  EXPECT_THAT(
      fault({.max_t = 10, .grace_period = 20}),
      HasSubstr("scheduler (ASHAScheduler) grace_period: it is 20, and max_t is 10: no trial would ever be compared"));
  EXPECT_THAT(fault({.max_t = 0}), HasSubstr("(ASHAScheduler) max_t: it is 0"));
  EXPECT_THAT(fault({.grace_period = 0}), HasSubstr("(ASHAScheduler) grace_period: it is 0"));
  EXPECT_THAT(fault({.reduction_factor = 1}), HasSubstr("(ASHAScheduler) reduction_factor: it is 1"));
  EXPECT_THAT(fault({.brackets = 5}), HasSubstr("(ASHAScheduler) brackets: there are 5; from 1 to 4"));
  EXPECT_THAT(fault({.reduction_factor = 1 + 1e-9}), HasSubstr("(ASHAScheduler) reduction_factor: it is 1.000000001, "
                                                               "which makes more than 1000 rungs"));
  EXPECT_THAT(fault({.grace_period = std::numeric_limits<double>::denorm_min(), .reduction_factor = 1.1}),
              HasSubstr("(ASHAScheduler) reduction_factor: it is 1.1, which makes more than 1000 rungs"))
      << "multiplying does not change such a number";
  EXPECT_THAT(fault({.time_attr = ""}), HasSubstr("(ASHAScheduler) time_attr"));
}

}  // namespace
}  // namespace cadre::tune
