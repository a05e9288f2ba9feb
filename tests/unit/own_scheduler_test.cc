// A program's own scheduler: its options are stored, checked and completed, and its mistakes are named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "cadre/stored.h"
#include "cadre/tune/scheduler.h"
#include "support/experiment_driver.h"
#include "support/message_of.h"
#include "tune/description.h"
#include "tune/options/options.h"

namespace cadre::tune {
namespace {

using test_support::Driver;
using test_support::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

}  // namespace

enum class Mistake {
  none,
  chooses_an_ended_trial,
  stops_a_running_trial,
  exploits_without_a_checkpoint,
  stops_and_exploits
};

struct StopBelow {
  double limit = 0;
  Mistake mistake = Mistake::none;
  Objective metric = {};
  std::optional<Mode> mode = {};

  std::unique_ptr<Scheduler> make(const SchedulerSetting&) const;
  void check(const TunerOptions&, Faults& faults) const { faults.unless(limit >= 0, "limit", "it is below 0"); }
};

namespace {

class StopBelowScheduler final : public Scheduler {
 public:
  explicit StopBelowScheduler(StopBelow options) : options_(std::move(options)) {}

  Decision on_result(const TrialView& trial, const Metrics& result, const Population& population) override {
    if (options_.mistake == Mistake::stops_a_running_trial) return {.stopped = {trial.index()}};
    if (options_.mistake == Mistake::stops_and_exploits)
      return {.kind = Decision::Kind::stop, .exploits = {{.target = trial.index(), .donor = trial.index()}}};
    if (options_.mistake == Mistake::exploits_without_a_checkpoint)
      return {.exploits = {{.target = trial.index(), .donor = trial.index()}}};
    EXPECT_EQ(population.trial(trial.index()).config(), trial.config());
    EXPECT_EQ(trial.num_results(), 0);  // each trial of these tests reports once, and that is not counted yet
    state_.seen.push_back(trial.id());
    return {.kind =
                result.number(options_.metric.name) < options_.limit ? Decision::Kind::stop : Decision::Kind::go_on};
  }
  std::optional<TrialIndex> choose(const Candidates& candidates, const Population& population) override {
    if (options_.mistake == Mistake::chooses_an_ended_trial) return 7;
    return Scheduler::choose(candidates, population);
  }
  Value save() const override { return to_stored(state_); }
  void load(const Value& state) override { state_ = from_value<State>(state); }
  std::string debug_string() const override { return std::to_string(state_.seen.size()) + " seen"; }

 private:
  struct State {
    std::vector<std::string> seen = {};
  };
  StopBelow options_;
  State state_ = {};
};

}  // namespace

std::unique_ptr<Scheduler> StopBelow::make(const SchedulerSetting&) const {
  return std::make_unique<StopBelowScheduler>(*this);
}

namespace {

TunerOptions stopping(StopBelow scheduler) {
  return {.tune_config = {.metric = maximize("score"), .num_samples = 2, .scheduler = std::move(scheduler)}};
}

Driver driver_of(StopBelow scheduler) {
  std::vector<std::string> notes;
  return {resolve({}, stopping(std::move(scheduler)), notes), 2};
}

TEST(OwnScheduler, DecidesOnResultsByTheTuneConfigsMetric) {
  Driver driver = driver_of({.limit = 0.5});
  EXPECT_THAT(driver.report(0, {{"score", 0.7}}), IsEmpty());
  EXPECT_THAT(driver.report(1, {{"score", 0.4}}), ElementsAre("stop 1"));
  EXPECT_EQ(driver.trial(1).status, TrialStatus::stopped);
}

TEST(OwnScheduler, ItsStateIsPartOfTheExperiments) {
  Driver driver = driver_of({.limit = 0.5});
  driver.report(0, {{"score", 0.7}});
  Experiment again = driver.experiment().anew();
  again.load(driver.experiment().save(), [](TrialIndex) { return Value(); });
  EXPECT_EQ(again.scheduler_state(), "1 seen");
}

TEST(OwnScheduler, ItsOptionsAreReadBackByName) {
  const Dict stored = describe({}, stopping({.limit = 0.25}));
  const AnyScheduler scheduler = parse_description(stored, "the store").options.tune_config.scheduler;
  EXPECT_EQ(scheduler.name(), "StopBelow");
  EXPECT_EQ(scheduler.get<StopBelow>().limit, 0.25);
}

TEST(OwnScheduler, ItsFaultsAreNamedWithItsName) {
  EXPECT_THAT(message_of<InvalidArgument>([] { check_options({}, stopping({.limit = -1})); }),
              HasSubstr("scheduler (StopBelow) limit: it is below 0"));
  TunerOptions options = stopping({});
  options.tune_config.metric = {};
  EXPECT_THAT(message_of<InvalidArgument>([&] { check_options({}, options); }),
              HasSubstr("scheduler (StopBelow) metric: say what trials are compared by"));
}

TEST(OwnScheduler, ATrialThatExploitsIsNotStopped) {
  Driver driver = driver_of({.mistake = Mistake::stops_and_exploits});
  EXPECT_THAT(driver.report(0, {{"score", 1}}, ".reporting_1"), ElementsAre("exploit 0"));
  driver.feed(FunctionReturned{0, 1});
  driver.feed(WorkerEnded{0, 1, {}});
  ASSERT_EQ(driver.trial(0).attempt, 2);
  driver.feed(FunctionReturned{0, 2});
  EXPECT_EQ(driver.trial(0).status, TrialStatus::terminated);
}

TEST(OwnScheduler, ItsMistakesAreNamed) {
  EXPECT_THAT(message_of<std::logic_error>([] { driver_of({.mistake = Mistake::chooses_an_ended_trial}); }),
              HasSubstr("lets trial 7 run, which was not offered to it"));
  const auto mistake = [](Mistake one) {
    Driver driver = driver_of({.mistake = one});
    return message_of<std::logic_error>([&] { driver.report(0, {{"score", 1}}); });
  };
  EXPECT_THAT(mistake(Mistake::stops_a_running_trial), HasSubstr("stops trial 00000, which is not paused"));
  EXPECT_THAT(mistake(Mistake::exploits_without_a_checkpoint), HasSubstr("trial 00000, which has no checkpoint"));
}

}  // namespace
}  // namespace cadre::tune
