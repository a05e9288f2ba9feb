// How trials share what the machine has, and how they get it.
#include "cadre/tune/schedulers/resource_changing_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TunerOptions changing(std::int64_t trials, ResourceChangingScheduler scheduler = {}) {
  TunerOptions options{.tune_config = {.num_samples = trials}};
  std::vector<std::string> notes;
  scheduler.complete(options, notes);
  options.tune_config.scheduler = scheduler;
  return options;
}

Metrics score(double value) { return {{"training_iteration", 1}, {"score", value}}; }

// Returns what the worker whose report was just handled is told of its CPUs; 0: nothing.
double told(const Driver& driver) {
  const std::vector<const AnswerReport*> answers = driver.all<AnswerReport>();
  return answers.size() == 1 && answers[0]->needs ? answers[0]->needs->total.cpus : 0;
}

TEST(ResourceChangingScheduler, ATrialGetsItsFairShareRoundedUp) {
  Driver driver(changing(3), 8);
  EXPECT_THAT(driver.report(0, score(1)), ElementsAre("resources 0"));
  EXPECT_EQ(told(driver), 3);
  EXPECT_EQ(driver.trial(0).held, Resources{.cpus = 3});
  EXPECT_THAT(driver.report(1, score(1)), ElementsAre("resources 1"));
  EXPECT_EQ(told(driver), 3);
  EXPECT_THAT(driver.report(2, score(1)), ElementsAre("resources 2"));
  EXPECT_EQ(told(driver), 2) << "what is left";
  EXPECT_EQ(driver.experiment().resource_usage(), "8/8 CPUs, 0/0 GPUs");
  EXPECT_THAT(driver.report(0, score(1)), IsEmpty());
  EXPECT_EQ(told(driver), 0) << "it knows what it has";
}

TEST(ResourceChangingScheduler, WhatATrialLeavesIsSharedByTheOthers) {
  Driver driver(changing(2), 4);
  driver.report(0, score(1));
  driver.report(1, score(1));
  driver.feed(FunctionReturned{0, 1});
  EXPECT_EQ(driver.trial(1).held->cpus, 2) << "until its next report";
  EXPECT_THAT(driver.report(1, score(1)), ElementsAre("resources 1"));
  EXPECT_EQ(told(driver), 4);
  EXPECT_EQ(driver.all<RecordDecision>()[0]->data,
            (Dict{{"resources", cadre::to_stored(Resources{.cpus = 4})}, {"restart", false}}));
}

TEST(ResourceChangingScheduler, TrialsThatCanStillBeginKeepTheirPart) {
  Driver driver(changing(100), 4);
  for (const TrialIndex trial : {0, 1, 2, 3}) EXPECT_THAT(driver.report(trial, score(1)), IsEmpty());
  Driver limited(
      [] {
        TunerOptions options = changing(100);
        options.tune_config.max_concurrent_trials = 2;
        return options;
      }(),
      6);
  limited.report(0, score(1));
  limited.report(1, score(1));
  EXPECT_EQ(limited.trial(0).held->cpus, 3);
  EXPECT_EQ(limited.trial(1).held->cpus, 3);
}

TEST(ResourceChangingScheduler, WhatNoTrialCouldBeginWithIsShared) {
  Driver driver(changing(9), Resources{.cpus = 8}, Resources{.cpus = 3});
  driver.report(0, score(1));
  driver.report(1, score(1));
  EXPECT_EQ(driver.trial(0).held->cpus, 4);
  EXPECT_EQ(driver.trial(1).held->cpus, 4);
  EXPECT_THAT(driver.feed(FunctionReturned{0, 1}), ElementsAre("end 0", "launch 2"));
  EXPECT_EQ(driver.trial(2).held->cpus, 3);
}

TEST(ResourceChangingScheduler, StepsAndTheirNumberAreLimits) {
  Driver driver(changing(1, {.resources_allocation = DistributeResources{.increase_by = {{"cpus", 2}}}}), 8);
  driver.report(0, score(1));
  EXPECT_EQ(driver.trial(0).held->cpus, 7) << "three steps fit";
  Driver few(
      changing(1, {.resources_allocation = DistributeResources{.increase_by = {{"cpus", 2}}, .increase_by_times = 2}}),
      8);
  few.report(0, score(1));
  EXPECT_EQ(few.trial(0).held->cpus, 5);
  Driver reserved(changing(1, {.resources_allocation = DistributeResources{.reserve_resources = {{"cpus", 3}}}}), 8);
  reserved.report(0, score(1));
  EXPECT_EQ(reserved.trial(0).held->cpus, 5);
}

TEST(ResourceChangingScheduler, OtherResourcesCanBeTheStep) {
  const Resources machine{.cpus = 1, .custom = {{"license", 5}}};
  Driver driver(changing(1, {.resources_allocation = DistributeResources{.increase_by = {{"license", 2}}}}), machine,
                {.cpus = 1, .custom = {{"license", 1}}});
  driver.report(0, score(1));
  EXPECT_EQ(driver.trial(0).held, (Resources{.cpus = 1, .custom = {{"license", 5}}}));
}

TEST(ResourceChangingScheduler, TheBestGetsAllThatIsFree) {
  const DistributeResourcesToTopJob rule{.metric = "score", .mode = Mode::max};
  Driver driver(changing(3, {.resources_allocation = rule}), 8);
  EXPECT_THAT(driver.report(1, score(0.5)), ElementsAre("resources 1")) << "nobody else has a result yet";
  EXPECT_EQ(told(driver), 6);
  driver.feed(FunctionReturned{0, 1});
  EXPECT_THAT(driver.report(2, score(0.4)), IsEmpty());
  EXPECT_THAT(driver.report(2, score(0.6)), ElementsAre("resources 2"));
  EXPECT_EQ(told(driver), 2);
  EXPECT_EQ(driver.trial(1).held->cpus, 6) << "it keeps what it has";
}

TEST(ResourceChangingScheduler, AtItsLimitTheBestLeavesTheRestToTheNext) {
  const DistributeResourcesToTopJob rule{
      .increase_by = {{"cpus", 1}}, .increase_by_times = 2, .metric = "score", .mode = Mode::min};
  Driver driver(changing(2, {.resources_allocation = rule}), 8);
  driver.report(0, score(0.1));
  EXPECT_EQ(told(driver), 3);
  driver.report(1, score(0.2));
  EXPECT_EQ(told(driver), 3);
}

TEST(ResourceChangingScheduler, APausedTrialGoesOnWithWhatItBeganWith) {
  const ASHAScheduler halving{.metric = "score", .mode = Mode::max, .max_t = 9, .reduction_factor = 2, .promote = true};
  Driver driver(changing(2, {.scheduler = halving}), 4);
  driver.report(0, {{"training_iteration", 0.5}, {"score", 1}});
  EXPECT_EQ(driver.trial(0).held->cpus, 2);
  EXPECT_THAT(driver.report(0, score(1)), ElementsAre("pause 0"));
  driver.report(1, {{"training_iteration", 0.5}, {"score", 0}});
  EXPECT_EQ(told(driver), 4) << "who waits at a rung needs nothing";
  EXPECT_THAT(driver.report(1, score(0)), UnorderedElementsAre("pause 1", "resume 0"));
  std::vector<double> cpus;
  for (const AnswerReport* answer : driver.all<AnswerReport>()) {
    if (answer->needs) cpus.push_back(answer->needs->total.cpus);
  }
  EXPECT_THAT(cpus, ElementsAre(1));
  EXPECT_EQ(driver.trial(0).held->cpus, 1);
}

// ---- In a new process

TEST(ResourceChangingScheduler, ARestartContinuesFromTheCheckpoint) {
  Driver driver(changing(2, {.restart = true}), 4);
  EXPECT_THAT(driver.report(0, score(1)), IsEmpty()) << "it has saved nothing, and keeps what it has";
  EXPECT_THAT(driver.all<Say>().at(0)->text, HasSubstr("trial 00000 keeps its resources: others take a new process"));
  driver.report(0, score(1));
  EXPECT_THAT(driver.all<Say>(), IsEmpty()) << "once is enough";
  EXPECT_THAT(driver.report(0, score(1), ".reporting_1"), ElementsAre("resources 0", "restart 0"));
  EXPECT_THAT(driver.report(1, score(1), ".reporting_1"), ElementsAre("resources 1", "restart 1"));
  EXPECT_THAT(driver.feed(FunctionReturned{0, 1}), ElementsAre("launch 0"));
  const Launch& launch = *driver.all<Launch>().at(0);
  EXPECT_EQ(launch.needs, (Needs{.total = {.cpus = 2}, .own_cpus = 2}));
  EXPECT_EQ(launch.step, 3);
  EXPECT_FALSE(launch.checkpoint.empty());
  EXPECT_THAT(driver.feed(FunctionReturned{1, 1}), ElementsAre("launch 1"));
  EXPECT_EQ(driver.experiment().resource_usage(), "4/4 CPUs, 0/0 GPUs");
}

TEST(ResourceChangingScheduler, ACheckpointIsAskedForBeforeARestart) {
  Driver driver(changing(1, {.restart = true}), 2);
  const auto offer = [&] { return ResultReported{0, 1, {.step = 1, .metrics = score(1), .offers_checkpoint = true}}; };
  EXPECT_THAT(driver.feed(offer()), ElementsAre("resources 0", "save 0"));
  EXPECT_THAT(driver.feed(ResultReported{0, 1, {.step = 1, .metrics = score(1), .checkpoint = ".reporting_1"}}),
              ElementsAre("restart 0"));
  EXPECT_THAT(driver.feed(FunctionReturned{0, 1}), ElementsAre("launch 0"));
  EXPECT_EQ(driver.trial(0).held->cpus, 2);
}

TEST(ResourceChangingScheduler, WhatATrialWillBeRestartedWithIsGivenToNobodyElse) {
  Driver driver(changing(3, {.restart = true}), 4);
  driver.report(0, score(1), ".reporting_1");
  EXPECT_EQ(driver.trial(0).changed->total.cpus, 2);
  EXPECT_THAT(driver.report(1, score(1), ".reporting_1"), IsEmpty()) << "the free one is promised to trial 0";
}

TEST(ResourceChangingScheduler, OtherGpusAndMoreWorkersTakeANewProcess) {
  const Resources machine{.cpus = 2, .gpus = 2};
  Driver gpus(changing(1), machine, {.cpus = 1, .gpus = 1});
  EXPECT_THAT(gpus.report(0, score(1), ".reporting_1"), ElementsAre("resources 0", "restart 0"));
  gpus.feed(FunctionReturned{0, 1});
  EXPECT_THAT(gpus.all<Launch>().at(0)->place.gpus, ElementsAre(0, 1));

  const PlacementGroup group{.bundles = {{.cpus = 1}, {.cpus = 1}}};
  Experiment workers(with_resources(Trainable("f"), group), changing(1));
  Actions actions;
  workers.handle(ControllerStarted{{.cpus = 4}}, actions);
  workers.handle(ResultReported{0, 1, {.step = 1, .metrics = score(1), .checkpoint = ".reporting_1"}}, actions);
  workers.handle(FunctionReturned{0, 1}, actions);
  const Needs needs = workers.trials().at(0).present_needs();
  EXPECT_EQ(needs.own_cpus, 1);
  EXPECT_EQ(needs.of_workers->cpus, 3);
  EXPECT_EQ(workers.trials().at(0).held->cpus, 4);
}

TEST(ResourceChangingScheduler, AShareOfAGpuGrowsByCpus) {
  Driver driver(changing(1), {.cpus = 2, .gpus = 1}, {.cpus = 1, .gpus = 0.5});
  driver.report(0, score(1));
  EXPECT_EQ(driver.trial(0).held, (Resources{.cpus = 2, .gpus = 0.5}));
}

// ---- Options

TEST(ResourceChangingScheduler, SaysWhatIsWrong) {
  const auto faults_of = [](ResourceChangingScheduler scheduler) {
    TunerOptions options{.tune_config = {.scheduler = std::move(scheduler)}};
    std::vector<std::string> notes;
    return message_of<InvalidArgument>([&] { check_options(Trainable("f"), resolve(Trainable("f"), options, notes)); });
  };
  EXPECT_THAT(faults_of({.resources_allocation = DistributeResources{.increase_by = {{"CPU", 1}}}}),
              HasSubstr("resources_allocation increase_by: \"CPU\" is \"cpus\" here"));
  EXPECT_THAT(faults_of({.resources_allocation = DistributeResources{.increase_by = {{"cpus", 0}}}}),
              HasSubstr("resources_allocation increase_by: the amount of \"cpus\" is 0; it must be at least 0.0001"));
  EXPECT_THAT(faults_of({.resources_allocation = DistributeResources{.increase_by = {{"gpus", 0.5}}}}),
              HasSubstr("there are 0.5 gpus; trials get whole ones"));
  EXPECT_THAT(faults_of({.resources_allocation = DistributeResources{.increase_by_times = -1}}),
              HasSubstr("increase_by_times: it is -1; it must be 0 (no limit) or more"));
  EXPECT_THAT(faults_of({.resources_allocation = DistributeResourcesToTopJob{}}),
              HasSubstr("resources_allocation metric: it has none, and the TuneConfig has none"));
  EXPECT_THAT(faults_of({.scheduler = ASHAScheduler{.metric = "score", .mode = Mode::max, .max_t = -1}}),
              HasSubstr("max_t"));
}

}  // namespace
}  // namespace cadre::tune
