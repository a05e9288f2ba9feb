// An experiment that goes on with other options (cadre/tune/extension.h).
#include "cadre/tune/extension.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "cadre/tune/stoppers.h"
#include "support/experiment_driver.h"
#include "tune/options/extend.h"

namespace cadre::tune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using test_support::Driver;
using test_support::kClean;
using test_support::unwind;

TunerOptions options_of(std::int64_t samples, Stop stop = {}) {
  return {.param_space = {{"x", uniform(0, 1)}},
          .tune_config = {.num_samples = samples},
          .run_config = {.stop = std::move(stop)}};
}

Stop until(double iteration) { return {{"training_iteration", at_least(iteration)}}; }

Metrics at(std::int64_t iteration) { return {{"training_iteration", iteration}}; }

std::vector<std::string> extend(Driver& driver, Extension extension, double cpus = 1) {
  return driver.feed(ControllerStarted{.resources = {.cpus = cpus}, .extension = std::move(extension)});
}

std::string said(const Driver& driver) {
  std::string text;
  for (const Say* say : driver.all<Say>()) text += say->text + "\n";
  return text;
}

TEST(Extension, MoreSamplesAreMadeAsIfTheyHadBeenAskedForAtOnce) {
  Driver two(options_of(2), 4);
  Driver four(options_of(4), 4);
  for (const TrialIndex trial : {0, 1}) unwind(two, trial);
  EXPECT_TRUE(two.finished());
  EXPECT_THAT(extend(two, {.num_samples = 4}, 4), ElementsAre("launch 2", "launch 3"));
  for (const TrialIndex trial : {2, 3}) EXPECT_EQ(two.trial(trial).config, four.trial(trial).config);
  EXPECT_EQ(two.experiment().samples_made(), 4);
}

TEST(Extension, TrialsThatTheFormerStopEndedGoOnFromTheirCheckpoints) {
  Driver driver(options_of(3, until(2)), 3);
  driver.report(0, at(1));
  driver.report(0, at(2), ".reporting_1");  // by the stop
  Metrics last = at(1);
  last.set("done", true);
  driver.report(1, last);               // by itself
  driver.feed(FunctionReturned{2, 1});  // as well
  for (const TrialIndex trial : {0, 1}) unwind(driver, trial);
  driver.feed(WorkerEnded{2, 1, kClean});
  ASSERT_TRUE(driver.finished());
  EXPECT_THAT(extend(driver, {.stop = until(4)}), ElementsAre("extend 0", "launch 0"));
  EXPECT_EQ(driver.all<Launch>().at(0)->step, 2);
  EXPECT_THAT(driver.all<Launch>().at(0)->checkpoint, HasSubstr("/checkpoint_"));
  EXPECT_THAT(
      said(driver),
      HasSubstr(
          R"({"stop": {"thresholds": {"training_iteration": 4.0}, "stoppers": []}}; 1 trial that had ended goes on)"));
  EXPECT_THAT(driver.report(0, at(3)), IsEmpty());
  EXPECT_THAT(driver.report(0, at(4)), ElementsAre("end 0"));
}

TEST(Extension, AStopAfterANumberOfResultsCountsThoseBeforeIt) {
  Driver driver(options_of(1, MaximumIterationStopper{2}), 1);
  driver.report(0, at(1));
  driver.report(0, at(2), ".reporting_1");
  unwind(driver, 0);
  ASSERT_TRUE(driver.finished());
  EXPECT_THAT(extend(driver, {.stop = Stop(MaximumIterationStopper{4})}), ElementsAre("extend 0", "launch 0"));
  EXPECT_THAT(driver.report(0, at(3)), IsEmpty());
  EXPECT_THAT(driver.report(0, at(4)), ElementsAre("end 0"));
}

TEST(Extension, ATrialThatMeetsTheNewStopStaysAtItsEnd) {
  Driver driver(options_of(2, until(4)), 2);
  for (const TrialIndex trial : {0, 1}) {
    driver.report(trial, {{"training_iteration", 4}, {"score", trial}}, ".reporting");
    unwind(driver, trial);
  }
  EXPECT_THAT(extend(driver, {.stop = Stop{{"score", at_least(1)}}}), ElementsAre("extend 0", "launch 0"));
}

TEST(Extension, ATrialThatItsSchedulerStoppedStaysAtItsEnd) {
  TunerOptions options = options_of(2, until(4));
  options.tune_config.scheduler =
      ASHAScheduler{.metric = "score", .mode = Mode::max, .max_t = 8, .grace_period = 1, .reduction_factor = 2};
  Driver driver(options, 2);
  driver.report(0, {{"training_iteration", 1}, {"score", 2}}, ".reporting");
  EXPECT_THAT(driver.report(1, {{"training_iteration", 1}, {"score", 1}}, ".reporting"), ElementsAre("stop 1"));
  driver.report(0, {{"training_iteration", 4}, {"score", 2}}, ".reporting");
  for (const TrialIndex trial : {0, 1}) unwind(driver, trial);
  EXPECT_THAT(extend(driver, {.stop = until(6)}), ElementsAre("extend 0", "launch 0"));
}

// ---- A scheduler's limit

ASHAScheduler asha_until(double max_t) {
  return {.metric = "score", .mode = Mode::max, .max_t = max_t, .grace_period = 1, .reduction_factor = 2};
}

Metrics scored(std::int64_t iteration, double score) { return {{"training_iteration", iteration}, {"score", score}}; }

// Reports until the trial's last decision is one about its end. Returns the number of its last result.
std::int64_t run_to_end(Driver& driver, TrialIndex trial, double score) {
  while (!driver.trial(trial).ended()) driver.report(trial, scored(driver.trial(trial).step + 1, score), ".reporting");
  const std::int64_t last = driver.trial(trial).step;
  unwind(driver, trial);
  return last;
}

TEST(Extension, TrialsThatCameToTheSchedulersLimitGoOnUnderAnother) {
  TunerOptions options = options_of(3);
  options.tune_config.scheduler = asha_until(4);
  Driver driver(options, 3);
  EXPECT_EQ(run_to_end(driver, 0, 1), 4);
  EXPECT_EQ(run_to_end(driver, 1, 1), 4);
  EXPECT_EQ(run_to_end(driver, 2, 0.5), 1);  // it is bad
  ASSERT_TRUE(driver.finished());
  EXPECT_THAT(extend(driver, {.scheduler = asha_until(8)}, 3),
              ElementsAre("extend 0", "extend 1", "launch 0", "launch 1"));
  EXPECT_EQ(driver.all<Launch>().at(0)->step, 4);
  for (const TrialIndex trial : {0, 1}) {
    EXPECT_EQ(run_to_end(driver, trial, 1), 8);
    EXPECT_EQ(driver.trial(trial).status, TrialStatus::terminated);
  }
  EXPECT_EQ(driver.trial(2).status, TrialStatus::stopped);

  options.tune_config.scheduler = asha_until(8);  // from the beginning
  Driver whole(options, 3);
  for (const TrialIndex trial : {0, 1}) EXPECT_EQ(run_to_end(whole, trial, 1), 8);
  EXPECT_EQ(run_to_end(whole, 2, 0.5), 1);
}

TEST(Extension, ATrialBeyondTheNewLimitStaysAtItsEnd) {
  TunerOptions options = options_of(1);
  options.tune_config.scheduler = asha_until(4);
  Driver driver(options, 1);
  run_to_end(driver, 0, 1);
  EXPECT_THAT(extend(driver, {.scheduler = asha_until(3)}), IsEmpty());
  EXPECT_THAT(extend(driver, {.stop = until(9)}), IsEmpty());  // the scheduler's limit stays
  EXPECT_THAT(extend(driver, {.stop = until(4), .scheduler = asha_until(9)}), IsEmpty());
  EXPECT_THAT(extend(driver, {.stop = Stop(), .scheduler = FIFO()}), ElementsAre("extend 0", "launch 0"));
}

TEST(Extension, ATrialThatReachesStopAndLimitAtOnceGoesOnWhenBothAreFurther) {
  TunerOptions options = options_of(1, until(4));
  options.tune_config.scheduler = asha_until(4);
  Driver driver(options, 1);
  run_to_end(driver, 0, 1);
  EXPECT_THAT(extend(driver, {.stop = until(8)}), IsEmpty());
  EXPECT_THAT(extend(driver, {.scheduler = asha_until(8)}), IsEmpty());
  EXPECT_THAT(extend(driver, {.stop = until(9)}), ElementsAre("extend 0", "launch 0"));
}

TEST(Extension, TrialsGoOnWhenTheBudgetIsLonger) {
  TunerOptions options = options_of(4, until(9));
  options.tune_config.time_budget = Seconds(10);
  Driver driver(options, 2);
  driver.report(0, at(1), ".reporting");
  driver.report(1, at(9), ".reporting");  // by its own stop
  unwind(driver, 1);
  driver.feed(TimerFired{{Timer::Kind::budget, 0, 0}});
  driver.report(0, at(2), ".reporting");
  unwind(driver, 0);
  driver.report(2, at(1));
  unwind(driver, 2);
  ASSERT_TRUE(driver.finished());
  EXPECT_EQ(driver.experiment().trials().size(), 3U);
  EXPECT_THAT(driver.feed(ControllerStarted{
                  .resources = {.cpus = 4}, .running_time_s = 10, .extension = {.time_budget = Seconds(25)}}),
              ElementsAre("extend 0", "extend 2", "launch 0", "launch 2", "launch 3"));
  EXPECT_EQ(driver.all<StartTimer>().at(0)->seconds, 15);
}

TEST(Extension, MoreSamplesAloneDoNotUndoAStopOfAll) {
  TunerOptions options = options_of(1);
  options.tune_config.time_budget = Seconds(10);
  Driver driver(options, 1);
  driver.feed(TimerFired{{Timer::Kind::budget, 0, 0}});
  driver.report(0, at(1));
  unwind(driver, 0);
  EXPECT_THAT(extend(driver, {.num_samples = 2}), IsEmpty());
  EXPECT_THAT(said(driver), HasSubstr("Warning: all trials were stopped"));
  EXPECT_TRUE(driver.finished());
}

TEST(Extension, LaterTrialsAreOfTheOtherSpace) {
  TunerOptions options = options_of(2);
  options.param_space = {{"x", uniform(0, 1)}, {"kind", grid_search({"a", "b", "c"})}};
  Driver driver(options, 4);
  ASSERT_EQ(driver.experiment().trials().size(), 4U);  // the second sample is under way
  for (const TrialIndex trial : {0, 1, 2, 3}) unwind(driver, trial);
  const auto made = driver.experiment().trials().size();
  ASSERT_EQ(made, 6U);
  for (const TrialIndex trial : {4, 5}) unwind(driver, trial);
  extend(driver, {.num_samples = 4, .param_space = Space{{"x", uniform(5, 6)}, {"kind", grid_search({"a", "b"})}}}, 9);
  const std::vector<Trial>& trials = driver.experiment().trials();
  ASSERT_EQ(trials.size(), 10U);
  std::set<double> drawn;
  for (TrialIndex index = 6; index < 10; ++index) {
    EXPECT_EQ(trials[index].config.get<std::string>("kind"), index % 2 == 0 ? "a" : "b");
    EXPECT_GE(trials[index].config.get<double>("x"), 5);
    drawn.insert(trials[index].config.get<double>("x"));
  }
  EXPECT_EQ(drawn.size(), 4U);
}

TEST(Extension, ASampleOfGridsThatIsUnderWayCountsAsMade) {
  TunerOptions options = options_of(2);
  options.param_space = {{"kind", grid_search({"a", "b", "c"})}};
  Driver driver(options, 4);
  for (const TrialIndex trial : {0, 1, 2, 3}) driver.report(trial, at(1), ".reporting");
  extend(driver, {.num_samples = 3, .param_space = Space{{"kind", grid_search({"d", "e"})}}}, 9);
  std::vector<std::string> kinds;
  for (const Trial& trial : driver.experiment().trials()) kinds.push_back(trial.config.get<std::string>("kind"));
  EXPECT_THAT(kinds, ElementsAre("a", "b", "c", "a", "d", "e"));
}

TEST(Extension, PointsThatAreStillToComeStay) {
  TunerOptions options = options_of(4);
  options.tune_config.points_to_evaluate = {{{"x", 0.1}}, {{"x", 0.2}}, {{"x", 0.3}}};
  Driver driver(options, 1);
  ASSERT_EQ(driver.experiment().trials().size(), 1U);
  extend(driver, {.param_space = Space{{"x", uniform(5, 6)}}}, 9);
  std::vector<double> values;
  for (const Trial& trial : driver.experiment().trials()) values.push_back(trial.config.get<double>("x"));
  ASSERT_EQ(values.size(), 4U);
  values.back() = std::floor(values.back());
  EXPECT_THAT(values, ElementsAre(0.1, 0.2, 0.3, 5));
}

TEST(Extension, AnotherSearcherLearnsFromTheTrialsBefore) {
  TunerOptions options = options_of(30);
  options.tune_config.metric = {"score"};
  options.tune_config.mode = Mode::max;
  Driver driver(options, 1);
  for (TrialIndex trial = 0; trial < 20; ++trial) {
    driver.report(trial, {{"score", -std::abs(driver.trial(trial).config.get<double>("x") - 0.25)}});
    unwind(driver, trial);
  }
  extend(driver, {.searcher = TPE{}});
  EXPECT_THAT(driver.experiment().searcher_state(), HasSubstr("TPE"));
  double distance = 0;
  for (TrialIndex trial = 20; trial < 30; ++trial) {
    const double x = driver.trial(trial).config.get<double>("x");
    if (trial > 20) distance += std::abs(x - 0.25) / 9;  // the one that was made before is drawn
    driver.report(trial, {{"score", -std::abs(x - 0.25)}});
    unwind(driver, trial);
  }
  EXPECT_LT(distance, 0.15);  // 0.31 if they are drawn
}

TEST(Extension, ASearcherForgetsTheResultOfATrialThatGoesOn) {
  TunerOptions options = options_of(3, until(1));
  options.tune_config.metric = {"score"};
  options.tune_config.mode = Mode::max;
  options.tune_config.searcher = TPE{.n_startup_trials = 1};
  Driver driver(options, 3);
  const auto report_all = [&](std::int64_t iteration) {
    for (TrialIndex trial = 0; trial < 3; ++trial) {
      driver.report(trial, {{"training_iteration", iteration}, {"score", 1}}, ".reporting");
      unwind(driver, trial);
    }
  };
  report_all(1);
  const std::string three = driver.experiment().searcher_state();
  EXPECT_THAT(three, HasSubstr("of 3 trials"));
  extend(driver, {.stop = until(2)}, 3);
  EXPECT_EQ(driver.experiment().searcher_state(), "TPE: configs are random");
  report_all(2);
  EXPECT_EQ(driver.experiment().searcher_state(), three);
}

// It groups trials by their numbers; those of another searcher are no repetitions.
TEST(Extension, ARepeaterTakesOverFromASearcherThatDoesNotRepeat) {
  TunerOptions options = options_of(9);
  options.tune_config.metric = {"score"};
  options.tune_config.mode = Mode::max;
  Driver driver(options, 1);
  const auto run = [&](TrialIndex from, TrialIndex to) {
    for (TrialIndex trial = from; trial < to; ++trial) {
      driver.report(trial, {{"score", 1.0}});
      unwind(driver, trial);
    }
  };
  run(0, 4);
  extend(driver, {.searcher = Repeater{.searcher = TPE{}, .repeat = 2}});
  run(4, 9);
  EXPECT_TRUE(driver.finished());
  const auto x = [&](TrialIndex trial) { return driver.trial(trial).config.get<double>("x"); };
  EXPECT_NE(x(2), x(3));
  EXPECT_EQ(x(6), x(7));
}

TEST(Extension, OnlyWhatDiffersIsAnExtension) {
  TunerOptions before = options_of(2, until(2));
  TunerOptions after = before;
  EXPECT_FALSE(extension_between(before, after).is_set());
  after.tune_config.num_samples = 3;
  after.tune_config.scheduler = ASHAScheduler{.max_t = 9};
  const Extension extension = extension_between(before, after);
  EXPECT_EQ(extension.num_samples, 3);
  EXPECT_TRUE(extension.scheduler.has_value());
  EXPECT_FALSE(extension.stop || extension.param_space || extension.searcher || extension.time_budget);
  extend(before, extension);
  EXPECT_FALSE(extension_between(before, after).is_set());
}

TEST(Extension, ItIsReadAsItWasStored) {
  const Extension extension{.num_samples = 3,
                            .time_budget = Seconds(7),
                            .stop = until(4),
                            .param_space = Space{{"x", uniform(0, 1)}},
                            .searcher = TPE{},
                            .scheduler = ASHAScheduler{.max_t = 9}};
  const Value stored = base::parse_json(to_json(cadre::to_stored(extension)), "it");
  const auto read = cadre::from_value<Extension>(stored);
  EXPECT_EQ(to_json(cadre::to_stored(read)), to_json(stored));
  EXPECT_EQ(read.time_budget, Seconds(7));
  EXPECT_FALSE(read.max_concurrent_trials);
  EXPECT_TRUE(read.param_space == extension.param_space && read.scheduler == extension.scheduler);
}

}  // namespace
}  // namespace cadre::tune
