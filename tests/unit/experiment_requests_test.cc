// What a user may ask of a running experiment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/experiment_driver.h"
#include "support/message_of.h"
#include "tune/requests.h"

namespace cadre::tune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using test_support::Driver;
using test_support::kClean;
using test_support::message_of;
using test_support::unwind;

TunerOptions options_of(std::int64_t samples) {
  return {.param_space = {{"x", uniform(0, 1)}, {"kind", "a"}}, .tune_config = {.num_samples = samples}};
}

Metrics at(std::int64_t iteration) { return {{"training_iteration", iteration}}; }

// ---- Stopping

TEST(ExperimentRequests, ATrialStopsAtItsNextReportAndAnotherOneBegins) {
  Driver driver(options_of(2), 1);
  EXPECT_THAT(driver.feed(TrialStopRequested{0}), IsEmpty());
  EXPECT_EQ(driver.trial(0).status, TrialStatus::running);
  EXPECT_THAT(driver.report(0, at(1)), ElementsAre("stop 0"));
  EXPECT_EQ(driver.trial(0).status, TrialStatus::stopped);
  EXPECT_EQ(training_iteration(driver.trial(0).last_result), 1);  // it counts
  unwind(driver, 0);
  EXPECT_EQ(driver.trial(1).status, TrialStatus::running);
}

TEST(ExperimentRequests, ATrialThatDoesNotReportIsEndedByForce) {
  Driver driver(options_of(1), 1);
  driver.feed(TrialStopRequested{0});
  const auto timers = driver.all<StartTimer>();
  ASSERT_EQ(timers.size(), 1U);
  EXPECT_EQ(timers[0]->seconds, 30);
  EXPECT_THAT(driver.feed(TimerFired{timers[0]->timer}), ElementsAre("kill 0", "stop 0"));
  driver.feed(WorkerEnded{0, 1, {engine::Exit::Kind::signal, 9, {}}});
  EXPECT_TRUE(driver.finished());
  EXPECT_EQ(driver.trial(0).status, TrialStatus::stopped);
}

TEST(ExperimentRequests, ATrialWhoseCheckpointIsNotWrittenInTimeIsEndedByForce) {
  Driver driver(options_of(1), 1);
  const Metrics result{{"training_iteration", 1}, {"should_checkpoint", true}};
  EXPECT_THAT(driver.feed(ResultReported{0, 1, {.step = 1, .metrics = result, .offers_checkpoint = true}}),
              ElementsAre("save 0"));
  EXPECT_THAT(driver.feed(TrialStopRequested{0}), IsEmpty());
  const auto timers = driver.all<StartTimer>();
  ASSERT_EQ(timers.size(), 1U);
  EXPECT_EQ(timers[0]->timer.kind, Timer::Kind::stopping);
  EXPECT_THAT(driver.feed(TimerFired{timers[0]->timer}), ElementsAre("kill 0", "stop 0"));
  EXPECT_EQ(driver.trial(0).status, TrialStatus::stopped);
}

TEST(ExperimentRequests, ATrialThatWaitsIsStoppedAtOnce) {
  Driver driver(options_of(2), {{.cpus = 1}});
  driver.feed(NodeDraining{.node = 0});
  driver.report(0, at(1), ".reporting");
  unwind(driver, 0);
  ASSERT_EQ(driver.trial(0).status, TrialStatus::pending);
  EXPECT_THAT(driver.feed(TrialStopRequested{0}), ElementsAre("stop 0"));
}

TEST(ExperimentRequests, ATrialThatFailsInsteadOfStoppingIsNotTriedAgain) {
  TunerOptions options = options_of(1);
  options.run_config.failure_config.max_failures = 5;
  Driver driver(options, 1);
  driver.feed(TrialStopRequested{0});
  EXPECT_THAT(driver.feed(FunctionThrew{0, 1, "bad luck"}), ElementsAre("stop 0"));
  EXPECT_EQ(driver.trial(0).error, "");
}

PopulationBasedTraining pbt_at_each_iteration() {
  return {.time_attr = "training_iteration",
          .metric = "score",
          .mode = Mode::max,
          .perturbation_interval = 1,
          .hyperparam_mutations = {{"x", uniform(0, 1)}}};
}

TEST(ExperimentRequests, ATrialWhoseWorkerDeclinesToTakeOverDoesNotRunAgain) {
  TunerOptions options = options_of(2);
  PopulationBasedTraining pbt = pbt_at_each_iteration();
  pbt.quantile_fraction = 0.5;
  options.tune_config.scheduler = pbt;
  Trainable trainable("f");
  trainable.methods.reset_config = true;
  Driver driver(options, {{.cpus = 2}}, {}, trainable);
  const auto result = [](double score) -> Metrics { return {{"training_iteration", 1}, {"score", score}}; };
  driver.report(0, result(0.9), ".reporting");
  EXPECT_THAT(driver.report(1, result(0.1), ".reporting"), ElementsAre("exploit 1", "take_over 1"));
  driver.feed(TrialStopRequested{1});
  EXPECT_THAT(driver.feed(WorkerDeclined{1, 1}), ElementsAre("stop 1"));
  EXPECT_EQ(driver.trial(1).worker, WorkerState::none);
}

TEST(ExperimentRequests, ATrialWhoseControllerEndedMeanwhileStopsWithoutRunningAgain) {
  Driver driver(options_of(2), 1);
  driver.feed(TrialStopRequested{0});
  EXPECT_THAT(driver.feed(ControllerStarted{{.cpus = 1}}), ElementsAre("stop 0", "launch 1"));
}

TEST(ExperimentRequests, AllStopAndNoMoreAreMade) {
  Driver driver(options_of(5), 2);
  driver.feed(StopRequested{});
  EXPECT_THAT(driver.report(0, at(1)), ElementsAre("end 0"));
  EXPECT_THAT(driver.report(1, at(1)), ElementsAre("end 1"));
  for (const TrialIndex trial : {0, 1}) unwind(driver, trial);
  EXPECT_TRUE(driver.finished());
  EXPECT_FALSE(driver.experiment().interrupted());
  EXPECT_EQ(driver.experiment().trials().size(), 2U);
}

// ---- Pauses

TEST(ExperimentRequests, APauseFreesEverythingAndWaits) {
  Driver driver(options_of(3), 2);
  driver.feed(PauseRequested{});
  EXPECT_THAT(driver.report(0, at(1), ".reporting"), ElementsAre("interrupt 0"));
  unwind(driver, 0);
  EXPECT_FALSE(driver.finished());
  EXPECT_THAT(driver.feed(FunctionReturned{1, 1}), ElementsAre("end 1"));  // it was at its end
  driver.feed(WorkerEnded{1, 1, kClean});
  EXPECT_FALSE(driver.finished());
  EXPECT_FALSE(driver.experiment().interrupted());
  EXPECT_EQ(driver.experiment().trials().size(), 2U);
  EXPECT_THAT(driver.feed(ResumeRequested{}), ElementsAre("launch 0", "launch 2"));
  EXPECT_EQ(driver.all<Launch>().at(0)->step, 1);
}

TEST(ExperimentRequests, ATrialThatHasNotReportedGoesOnWithoutAnotherWorker) {
  Driver driver(options_of(1), 1);
  driver.feed(PauseRequested{});
  const Timer timer = driver.all<StartTimer>().at(0)->timer;
  EXPECT_THAT(driver.feed(ResumeRequested{}), IsEmpty());
  EXPECT_FALSE(driver.experiment().awaits(timer));
  EXPECT_THAT(driver.report(0, at(1)), IsEmpty());
  EXPECT_EQ(driver.trial(0).attempt, 1);
}

TEST(ExperimentRequests, AnInterruptionEndsAPausedExperiment) {
  Driver driver(options_of(1), 1);
  driver.feed(PauseRequested{});
  driver.report(0, at(1));
  unwind(driver, 0);
  EXPECT_FALSE(driver.finished());
  driver.feed(ExperimentInterrupted{});
  EXPECT_TRUE(driver.finished());
  EXPECT_TRUE(driver.experiment().interrupted());
  EXPECT_THAT(driver.feed(ControllerStarted{{.cpus = 1}}), ElementsAre("launch 0"));
}

TEST(ExperimentRequests, ATrialThatFailsInAPauseInsteadOfStoppingDoesNotRunAgain) {
  Driver driver(options_of(1), 1);
  driver.feed(TrialStopRequested{0});
  driver.feed(PauseRequested{});
  EXPECT_THAT(driver.feed(FunctionThrew{0, 1, "bad luck"}), ElementsAre("stop 0"));
  EXPECT_THAT(driver.all<Say>().at(0)->text, HasSubstr("which does not count: bad luck"));
  driver.feed(WorkerEnded{0, 1, kClean});
  EXPECT_TRUE(driver.finished());
}

TEST(ExperimentRequests, AStopInAPauseEndsATrialThatFailsInsteadOfReporting) {
  Driver driver(options_of(1), 1);
  driver.feed(PauseRequested{});
  driver.feed(StopRequested{});
  EXPECT_THAT(driver.feed(FunctionThrew{0, 1, "bad luck"}), ElementsAre("end 0"));
  driver.feed(WorkerEnded{0, 1, kClean});
  EXPECT_TRUE(driver.finished()) << "nobody needs to resume it for that";
}

TEST(ExperimentRequests, TheBudgetWaitsForTheEndOfThePause) {
  TunerOptions options = options_of(1);
  options.tune_config.time_budget = Seconds(10);
  Driver driver(options, 1);
  const Timer budget{Timer::Kind::budget, 0, 0};
  EXPECT_TRUE(driver.experiment().awaits(budget));
  driver.feed(PauseRequested{});
  EXPECT_FALSE(driver.experiment().awaits(budget));
  driver.feed(ResumeRequested{.running_time_s = 4});
  EXPECT_TRUE(driver.experiment().awaits(budget));
  EXPECT_EQ(driver.all<StartTimer>().at(0)->seconds, 6);
}

TEST(ExperimentRequests, TheDeadlineOfABarrierBeginsAnewAfterThePause) {
  TunerOptions options = options_of(2);
  PopulationBasedTraining pbt = pbt_at_each_iteration();
  pbt.synch = true;
  pbt.synch_deadline = 60;
  options.tune_config.scheduler = pbt;
  Driver driver(options, 2);
  EXPECT_THAT(driver.report(0, {{"training_iteration", 1}, {"score", 0.5}}, ".reporting"), ElementsAre("pause 0"));
  const Timer barrier = driver.all<StartTimer>().at(0)->timer;
  EXPECT_TRUE(driver.experiment().awaits(barrier));
  driver.feed(PauseRequested{});
  EXPECT_FALSE(driver.experiment().awaits(barrier)) << "trial 1 may not go on to it";
  driver.feed(ResumeRequested{});
  const auto started = driver.all<StartTimer>();
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0]->timer, barrier);
  EXPECT_EQ(started[0]->seconds, 60);
  EXPECT_TRUE(driver.experiment().awaits(barrier));
}

TEST(ExperimentRequests, ATrialThatIsSavedForAPauseGoesOnWaitingForOthersAfterIt) {
  TunerOptions options = options_of(2);
  options.tune_config.scheduler =
      HyperBandScheduler{.metric = "score", .mode = Mode::max, .max_t = 4, .reduction_factor = 2};
  Driver driver(options, 2);
  const auto result = [](TrialIndex trial, double score, const std::string& checkpoint) {
    return ResultReported{trial,
                          1,
                          {.step = 1,
                           .metrics = {{"training_iteration", 1}, {"score", score}},
                           .checkpoint = checkpoint,
                           .offers_checkpoint = true}};
  };
  EXPECT_THAT(driver.feed(result(0, 0.5, "")), ElementsAre("pause 0"));
  EXPECT_THAT(driver.feed(PauseRequested{}), ElementsAre("save 0"));
  EXPECT_THAT(driver.feed(ResumeRequested{}), IsEmpty());
  EXPECT_THAT(driver.feed(result(0, 0.5, ".reporting")), ElementsAre("pause 0"));
  EXPECT_EQ(driver.trial(0).worker, WorkerState::parked);
  EXPECT_THAT(driver.feed(result(1, 0.1, "")), ElementsAre("stop 1", "resume 0"));
}

// ---- Enqueued configs

TEST(ExperimentRequests, AnEnqueuedConfigIsTheNextTrialInAdditionToTheOthers) {
  Driver plain(options_of(4), 1);
  Driver driver(options_of(3), 1);
  driver.feed(ConfigEnqueued{{{"x", 0.5}, {"kind", "b"}}});
  driver.feed(ConfigEnqueued{{{"kind", "c"}}});
  for (TrialIndex trial = 0; trial < 4; ++trial) unwind(plain, trial);
  for (TrialIndex trial = 0; trial < 5; ++trial) unwind(driver, trial);
  EXPECT_TRUE(driver.finished());
  const std::vector<Trial>& trials = driver.experiment().trials();
  ASSERT_EQ(trials.size(), 5U);
  std::vector<std::string> kinds;
  for (const Trial& trial : trials) kinds.push_back(trial.config.get<std::string>("kind"));
  EXPECT_THAT(kinds, ElementsAre("a", "b", "c", "a", "a"));
  EXPECT_EQ(trials[1].config.get<double>("x"), 0.5);
  EXPECT_EQ(trials[3].config, plain.trial(3).config);  // drawn by its own number
  EXPECT_THAT(trials[1].tag, HasSubstr("kind=b"));
}

TEST(ExperimentRequests, AConfigMayBeEnqueuedWhenAllOthersAreMade) {
  Driver driver(options_of(1), 1);
  EXPECT_THAT(driver.feed(ConfigEnqueued{{{"x", 0.25}}}), IsEmpty());
  EXPECT_EQ(driver.experiment().trials_to_come(), 1);
  unwind(driver, 0);
  EXPECT_EQ(driver.trial(1).config.get<double>("x"), 0.25);
}

TEST(ExperimentRequests, GridsAreSearchedAsIfNothingHadBeenEnqueued) {
  TunerOptions options = options_of(1);
  options.param_space = {{"kind", grid_search({"a", "b", "c"})}};
  Driver driver(options, 1);
  driver.feed(ConfigEnqueued{{{"kind", "z"}}});
  for (TrialIndex trial = 0; trial < 4; ++trial) unwind(driver, trial);
  std::vector<std::string> kinds;
  for (const Trial& trial : driver.experiment().trials()) kinds.push_back(trial.config.get<std::string>("kind"));
  EXPECT_THAT(kinds, ElementsAre("a", "z", "b", "c"));
}

TEST(ExperimentRequests, ASearcherThatIsBeingAskedAnswersFirst) {
  TunerOptions options = options_of(3);
  options.tune_config.metric = {"score"};
  options.tune_config.mode = Mode::max;
  options.tune_config.searcher = TPE{};
  Driver driver(options, 1);
  driver.answers_for_searcher = false;
  unwind(driver, 0);  // the searcher is asked for trial 1
  driver.feed(ConfigEnqueued{{{"x", 0.5}}});
  ASSERT_EQ(driver.experiment().trials().size(), 1U);
  driver.answers_for_searcher = true;
  driver.feed(ask(driver.experiment().searcher(), 1));
  EXPECT_NE(driver.trial(1).config.get<double>("x"), 0.5);
  for (TrialIndex trial = 1; trial < 4; ++trial) unwind(driver, trial);
  EXPECT_TRUE(driver.finished());
  EXPECT_EQ(driver.trial(2).config.get<double>("x"), 0.5);
}

TEST(ExperimentRequests, AReplayTakesNoConfigBesideItsOwn) {
  TunerOptions options = options_of(1);
  options.tune_config.scheduler =
      PopulationBasedTrainingReplay{.schedule = PolicySchedule{{{"x", 0.5}}, {{5, {{"x", 0.25}}}}}};
  Driver driver(options, 1);
  EXPECT_THAT(message_of<Error>([&] { to_event(enqueue_request({{"x", 0.75}}), driver.experiment(), options); }),
              HasSubstr("a replay begins with the first config of its schedule"));
}

TEST(ExperimentRequests, ASnapshotHasWhatWasEnqueued) {
  Driver driver(options_of(4), 1);
  driver.feed(ConfigEnqueued{{{"x", 0.5}}});
  driver.feed(ConfigEnqueued{{{"x", 0.75}}});
  unwind(driver, 0);
  Experiment restored(with_resources(Trainable("f"), Resources()), options_of(4));
  restored.load(driver.experiment().save(), [&](TrialIndex trial) { return driver.experiment().save_trial(trial); });
  EXPECT_EQ(restored.trials_to_come(), driver.experiment().trials_to_come());
  Actions actions;
  for (Experiment* one : {&restored, &driver.experiment()}) {
    for (TrialIndex trial = 1; trial < 6; ++trial) {
      one->handle(FunctionReturned{trial, 1}, actions);
      one->handle(WorkerEnded{trial, 1, kClean}, actions);
    }
    EXPECT_TRUE(one->finished());
  }
  for (TrialIndex trial = 0; trial < 6; ++trial)
    EXPECT_EQ(restored.trials().at(trial).config, driver.trial(trial).config);
}

// ---- Requests as they come

TEST(ExperimentRequests, WhatCannotBeDoneIsRefused) {
  Driver driver(options_of(2), 1);
  const auto message = [&](const Dict& request) {
    return message_of<Error>([&] { to_event(request, driver.experiment(), options_of(2)); });
  };
  EXPECT_THAT(message(stop_request("00007")), HasSubstr("there is no trial \"00007\"; there are 00000 to 00000"));
  EXPECT_THAT(message(resume_request()), HasSubstr("is not paused"));
  EXPECT_THAT(message(enqueue_request({{"y", 0.5}})), HasSubstr("\"y\""));
  EXPECT_THAT(message(enqueue_request({{"x", "much"}})), HasSubstr("x"));
  EXPECT_THAT(message({{"do", "dance"}}), HasSubstr("\"dance\""));
  EXPECT_THAT(message({{"trial", "00000"}}), HasSubstr("do"));
  driver.feed(PauseRequested{});
  EXPECT_THAT(message(pause_request()), HasSubstr("is paused already"));
  driver.feed(ResumeRequested{});
  unwind(driver, 0);
  EXPECT_THAT(message(stop_request("00000")), HasSubstr("trial 00000 has ended: TERMINATED"));
  driver.feed(StopRequested{});
  EXPECT_THAT(message(stop_request()), HasSubstr("all trials are being stopped"));
  EXPECT_THAT(message(enqueue_request({{"x", 0.5}})), HasSubstr("all trials are being stopped"));
  driver.feed(ExperimentInterrupted{});
  EXPECT_THAT(message(pause_request()), HasSubstr("is being interrupted"));
}

}  // namespace
}  // namespace cadre::tune
