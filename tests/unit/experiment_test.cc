#include "tune/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <new>
#include <stdexcept>

#include "cadre/error.h"
#include "cadre/tune/searchers.h"
#include "control/event_rows.h"
#include "support/experiment_driver.h"
#include "support/message_of.h"

namespace cadre::tune {

// A scheduler that prefers the trial made last.
struct LastFirst {
  std::unique_ptr<Scheduler> make(const SchedulerSetting&) const;
};

namespace {

class LastFirstScheduler final : public Scheduler {
 public:
  bool needs_whole_population() const override { return true; }
  Decision on_result(const TrialView&, const Metrics&, const Population&) override { return {}; }
  std::optional<TrialIndex> choose(const Candidates& candidates, const Population&) override {
    std::optional<TrialIndex> last;
    for (const TrialIndex candidate : candidates) last = candidate;
    return last;
  }
  std::string debug_string() const override { return {}; }
};

}  // namespace

std::unique_ptr<Scheduler> LastFirst::make(const SchedulerSetting&) const {
  return std::make_unique<LastFirstScheduler>();
}

namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using test_support::Driver;
using test_support::kClean;
using test_support::message_of;

TunerOptions fifo(std::int64_t trials) { return {.param_space = {}, .tune_config = {.num_samples = trials}}; }

TunerOptions pbt(std::int64_t trials, bool synch = false) {
  return {.param_space = {{"lr", uniform(0, 1)}},
          .tune_config = {.num_samples = trials,
                          .scheduler = PopulationBasedTraining{.time_attr = "training_iteration",
                                                               .metric = "score",
                                                               .perturbation_interval = 2,
                                                               .hyperparam_mutations = {{"lr", uniform(0, 1)}},
                                                               .quantile_fraction = 0.5,
                                                               .synch = synch}}};
}

Metrics at(std::int64_t iteration, double score) { return {{"training_iteration", iteration}, {"score", score}}; }

TEST(Experiment, TrialsBeyondTheSlotsWait) {
  Driver driver(fifo(3), 2);
  EXPECT_THAT(driver.decided, ElementsAre("launch 0", "launch 1"));
  EXPECT_THAT(driver.feed(FunctionReturned{0, 1}), ElementsAre("end 0", "launch 2"));
  EXPECT_FALSE(driver.finished());
}

TEST(Experiment, ItIsFinishedWhenTheLastProcessIsGone) {
  Driver driver(fifo(1), 1);
  driver.feed(FunctionReturned{0, 1});
  EXPECT_FALSE(driver.finished());
  driver.feed(WorkerEnded{0, 1, kClean});
  EXPECT_TRUE(driver.finished());
}

TEST(Experiment, AnEndWithoutTheFunctionsWordIsAFailure) {
  Driver driver(fifo(1), 1);
  EXPECT_THAT(driver.feed(WorkerEnded{0, 1, kClean}), ElementsAre("fail 0"));
  EXPECT_EQ(driver.trial(0).error, "the worker exited with code 0 before its training function returned");
}

const engine::Exit kNodeLost{engine::Exit::Kind::node_lost, 0, {}};

std::vector<engine::NodeId> nodes_of_launches(const Driver& driver) {
  std::vector<engine::NodeId> nodes;
  for (const Launch* launch : driver.all<Launch>()) nodes.push_back(launch->place.node);
  return nodes;
}

TEST(Experiment, TrialsRunOnTheNodesThatHaveRoom) {
  Driver driver(fifo(4), {{.cpus = 1}, {.cpus = 2}});
  EXPECT_THAT(nodes_of_launches(driver), ElementsAre(0, 1, 1));
  EXPECT_EQ(driver.all<Launch>()[1]->machine, (Resources{.cpus = 2}));
  EXPECT_THAT(driver.feed(NodeJoined{{.id = 7, .name = "c", .resources = {.cpus = 1}}}), ElementsAre("launch 3"));
  EXPECT_THAT(nodes_of_launches(driver), ElementsAre(7));
}

// ---- What waits for nodes

using Demands = std::vector<engine::Demand>;

TEST(Experiment, TrialsWithoutRoomAreDemand) {
  Driver driver(fifo(5), {{.cpus = 1}, {.cpus = 1}});
  EXPECT_EQ(driver.experiment().demand(), (Demands{{{.cpus = 1}, 3}}));
  driver.feed(NodeJoined{{.id = 7, .name = "c", .resources = {.cpus = 2}}});
  EXPECT_EQ(driver.experiment().demand(), (Demands{{{.cpus = 1}, 1}}));
  driver.feed(FunctionReturned{0, 1});
  EXPECT_THAT(driver.experiment().demand(), IsEmpty());
  driver.feed(WorkerEnded{1, 1, kNodeLost});
  EXPECT_EQ(driver.experiment().demand(), (Demands{{{.cpus = 1}, 1}}));
  driver.feed(ExperimentInterrupted{});
  EXPECT_THAT(driver.experiment().demand(), IsEmpty());
}

TEST(Experiment, AsManyTrialsAreDemandAsMayRunAtOnce) {
  TunerOptions options = fifo(100);
  options.tune_config.max_concurrent_trials = 3;
  Driver driver(options, {{.cpus = 1}});
  EXPECT_EQ(driver.experiment().demand(), (Demands{{{.cpus = 1}, 2}}));
}

TEST(Experiment, TrialsThatWaitForOthersAreNoDemand) {
  Driver driver(pbt(3, true), {{.cpus = 1}});
  EXPECT_EQ(driver.experiment().demand(), (Demands{{{.cpus = 1}, 2}}));
  driver.report(0, at(2, 0.1), ".reporting_1");  // waits for the two others, of which one runs now
  EXPECT_EQ(driver.experiment().demand(), (Demands{{{.cpus = 1}, 1}}));
}

TEST(Experiment, TheLossOfANodeIsNoFailureOfItsTrials) {
  Driver driver(fifo(3), {{.cpus = 1}, {.cpus = 2}});
  driver.report(0, at(1, 0.5), ".reporting_1");
  EXPECT_THAT(driver.feed(WorkerEnded{0, 1, kNodeLost}), ElementsAre("retry 0"));  // max_failures is 0
  EXPECT_THAT(driver.feed(NodeLeft{0}), IsEmpty());
  EXPECT_EQ(driver.trial(0).failures, 0);
  EXPECT_EQ(driver.trial(0).preemption_failures, 1);
  EXPECT_EQ(driver.trial(0).status, TrialStatus::pending);
  EXPECT_EQ(driver.trial(1).status, TrialStatus::running);
  EXPECT_THAT(driver.feed(FunctionReturned{1, 1}), ElementsAre("end 1", "launch 0"));
  EXPECT_EQ(driver.all<Launch>().at(0)->step, 1);
}

TEST(Experiment, LossesOfNodesHaveABudgetOfTheirOwn) {
  TunerOptions options = fifo(1);
  options.run_config.failure_config.max_failures = -1;
  options.run_config.failure_config.max_preemption_failures = 1;
  Driver driver(options, {{.cpus = 1}, {.cpus = 1}});
  EXPECT_THAT(driver.feed(WorkerEnded{0, 1, kNodeLost}), ElementsAre("retry 0", "launch 0"));
  EXPECT_THAT(driver.feed(WorkerEnded{0, 2, kNodeLost}), ElementsAre("fail 0"));
  EXPECT_EQ(driver.trial(0).error, "the worker was lost with its node");
}

// The workers' ends are told before the node's.
TEST(Experiment, NothingBeginsOnANodeOfWhichAWorkerWasLost) {
  Driver driver(fifo(2), {{.cpus = 2}});
  EXPECT_THAT(driver.feed(WorkerEnded{0, 1, kNodeLost}), ElementsAre("retry 0"));
  EXPECT_THAT(driver.feed(NodeJoined{{.id = 1, .name = "b", .resources = {.cpus = 1}}}), ElementsAre("launch 0"));
}

TEST(Experiment, WhoLosesNodesAndMakesProgressDoesNotBackOff) {
  Driver driver(fifo(1), {{.cpus = 1}});
  const auto lose_node = [&](std::int64_t attempt) {
    std::vector<std::string> decisions = driver.feed(WorkerEnded{0, attempt, kNodeLost});
    const std::vector<std::string> more = driver.feed(
        NodeJoined{{.id = static_cast<engine::NodeId>(attempt), .name = "another", .resources = {.cpus = 1}}});
    decisions.insert(decisions.end(), more.begin(), more.end());
    return decisions;
  };
  for (std::int64_t attempt = 1; attempt < 6; ++attempt) {
    driver.report(0, at(attempt, 0.5), ".reporting_1");
    EXPECT_THAT(lose_node(attempt), ElementsAre("retry 0", "launch 0"));
  }
  EXPECT_THAT(lose_node(6), ElementsAre("retry 0", "launch 0"));
  EXPECT_THAT(lose_node(7), ElementsAre("retry 0"));
  EXPECT_TRUE(driver.trial(0).backs_off);
}

TEST(Experiment, APausedTrialWhoseNodeIsLostStaysPausedAndGoesOnElsewhere) {
  Driver driver(pbt(3), {{.cpus = 1}, {.cpus = 1}});
  EXPECT_THAT(driver.report(0, at(2, 0.2), ".reporting"), ElementsAre("pause 0", "launch 2"));
  EXPECT_THAT(driver.feed(WorkerEnded{0, 1, kNodeLost}), ElementsAre("retry 0"));
  EXPECT_EQ(driver.trial(0).status, TrialStatus::paused);
  driver.feed(WorkerEnded{2, 1, kNodeLost});
  driver.feed(NodeLeft{0});
  EXPECT_THAT(driver.feed(FunctionReturned{1, 1}), ElementsAre("end 1", "launch 2"));  // it ran
  EXPECT_THAT(driver.feed(FunctionReturned{2, 2}), ElementsAre("end 2", "launch 0"));
}

TEST(Experiment, AParkedTrialGoesOnOnItsOwnNode) {
  TunerOptions options = pbt(2);
  options.tune_config.max_concurrent_trials = 1;
  Driver driver(options, {{.cpus = 2}});
  driver.report(0, at(2, 0.2), ".reporting");
  driver.feed(NodeJoined{{.id = 1, .name = "b", .resources = {.cpus = 1}}});  // which a new worker would get
  EXPECT_THAT(driver.report(1, at(2, 0.2), ".reporting"), ElementsAre("pause 1", "resume 0"));
  EXPECT_EQ(driver.trial(0).node, 0u);
}

TEST(Experiment, AParkedTrialMovesToANodeThatHasRoomIfItsOwnHasNoneAndItLosesNothing) {
  Driver driver(pbt(3), {{.cpus = 1}});
  driver.report(0, at(2, 0.2), ".reporting");
  driver.report(1, at(2, 0.2), ".reporting");
  ASSERT_EQ(driver.parked_workers(), 2);
  EXPECT_THAT(driver.feed(NodeJoined{{.id = 1, .name = "b", .resources = {.cpus = 1}}}), ElementsAre("restart 0"));
  EXPECT_EQ(driver.parked_workers(), 1);  // there is room for one
  EXPECT_THAT(driver.feed(FunctionReturned{0, 1}), ElementsAre("launch 0"));
  EXPECT_EQ(driver.all<Launch>().at(0)->place.node, 1u);
  EXPECT_EQ(driver.all<Launch>().at(0)->step, 1);
}

TEST(Experiment, OnANodeThatDrainsNothingBeginsAndASavedTrialLeaves) {
  Driver driver(fifo(3), {{.cpus = 1}, {.cpus = 1}});
  EXPECT_THAT(driver.feed(NodeDraining{.node = 0}), IsEmpty());
  EXPECT_THAT(driver.report(0, at(1, 0.5)), IsEmpty());  // it would lose this result
  EXPECT_EQ(driver.all<AnswerReport>().at(0)->verdict, channel::Verdict::go_on);
  EXPECT_THAT(driver.report(0, at(2, 0.5), ".reporting"), ElementsAre("restart 0"));
  EXPECT_EQ(driver.all<AnswerReport>().at(0)->verdict, channel::Verdict::stop);
  EXPECT_THAT(driver.feed(FunctionReturned{0, 1}), IsEmpty());
  EXPECT_THAT(driver.feed(FunctionReturned{1, 1}), ElementsAre("end 1", "launch 0"));  // before trial 2
  EXPECT_EQ(driver.all<Launch>().at(0)->place.node, 1u);
  EXPECT_EQ(driver.all<Launch>().at(0)->step, 2);
  EXPECT_EQ(driver.trial(0).failures + driver.trial(0).preemption_failures, 0);
}

TEST(Experiment, WhoOffersItsCheckpointIsAskedForItBeforeItLeavesANodeThatDrains) {
  Driver driver(fifo(1), {{.cpus = 1}, {.cpus = 1}});
  driver.feed(NodeDraining{.node = 0});
  EXPECT_THAT(driver.feed(ResultReported{0, 1, {.step = 1, .metrics = at(1, 0.5), .offers_checkpoint = true}}),
              ElementsAre("save 0"));
  EXPECT_THAT(driver.feed(ResultReported{0, 1, {.step = 1, .metrics = at(1, 0.5), .checkpoint = ".reporting"}}),
              ElementsAre("restart 0"));
  EXPECT_THAT(driver.feed(FunctionReturned{0, 1}), ElementsAre("launch 0"));
}

TEST(Experiment, AParkedWorkerLeavesANodeThatDrains) {
  Driver driver(pbt(2), {{.cpus = 1}});
  driver.report(0, at(2, 0.2), ".reporting");
  ASSERT_EQ(driver.trial(0).worker, WorkerState::parked);
  EXPECT_THAT(driver.feed(NodeDraining{.node = 0}), ElementsAre("unpark 0"));
  driver.feed(FunctionReturned{0, 1});
  EXPECT_EQ(driver.trial(0).status, TrialStatus::paused);
  EXPECT_THAT(driver.feed(NodeJoined{{.id = 1, .name = "b", .resources = {.cpus = 1}}}), ElementsAre("launch 0"));
}

TEST(Experiment, WithoutANodeThatHasWhatTrialsNeedTheyWaitAndOneLineSaysWhy) {
  Driver driver(fifo(1), {{.cpus = 1}, {.cpus = 2}}, {.cpus = 4});
  EXPECT_THAT(driver.decided, IsEmpty());
  ASSERT_EQ(driver.all<Say>().size(), 1u);
  EXPECT_EQ(driver.all<Say>()[0]->text,
            "Trials wait until a node joins that has what one needs: 4 cpus (the largest node has 2)");
  driver.feed(NodeJoined{{.id = 2, .name = "c", .resources = {.cpus = 3}}});
  EXPECT_THAT(driver.all<Say>(), IsEmpty());
  EXPECT_THAT(driver.feed(NodeJoined{{.id = 3, .name = "d", .resources = {.cpus = 4}}}), ElementsAre("launch 0"));
}

TEST(Experiment, ItsStateHasNodesOnlyInACluster) {
  EXPECT_EQ(to_json(Driver(fifo(1), 1).experiment().save()).find("\"nodes\""), std::string::npos);
  Driver driver(fifo(2), {{.cpus = 1}, {.cpus = 1}});
  driver.feed(NodeDraining{.node = 1});
  Experiment again = driver.experiment().anew();
  again.load(driver.experiment().save(), [](TrialIndex) { return Value(); });
  Actions actions;
  again.handle(FunctionReturned{1, 1}, actions);
  again.handle(NodeLeft{.node = 1}, actions);
  EXPECT_EQ(again.cluster().usage(), "1/1 CPUs, 0/0 GPUs");
  EXPECT_EQ(again.cluster().node(0).name, "a");
}

TEST(Experiment, EventsOfNodesAreRowsAndOneMachineHasNone) {
  EXPECT_EQ(control::to_event_row(ControllerStarted{}, 0).data.find("\"nodes\""), std::string::npos);
  const engine::Node node{.id = 3, .name = "a", .address = "10.0.0.1", .resources = {.cpus = 2, .gpus = 1}};
  const auto again = [](const auto& event) {
    return control::from_event_row<Event, ResultReported>(control::to_event_row(event, 0));
  };
  const ControllerStarted started{.nodes = {.may_change = true, .nodes = {node}, .draining = {3}}};
  EXPECT_EQ(std::get<ControllerStarted>(again(started)).nodes.nodes, std::vector{node});
  EXPECT_EQ(std::get<ControllerStarted>(again(started)).nodes.draining, std::vector<engine::NodeId>{3});
  EXPECT_EQ(control::to_event_row(NodeJoined{node}, 0).kind, "node_joined");
  EXPECT_EQ(std::get<NodeJoined>(again(NodeJoined{node})).node, node);
  EXPECT_EQ(std::get<NodeDraining>(again(NodeDraining{3, 60, "preempted"})).seconds_left, 60);
  EXPECT_EQ(std::get<NodeLeft>(again(NodeLeft{3, "preempted"})).reason, "preempted");
}

TEST(Experiment, WhoHasProgressedLeastRunsNext) {
  Driver driver(pbt(3), 1);
  EXPECT_THAT(driver.report(0, at(1, 0.1)), IsEmpty());
  EXPECT_THAT(driver.report(0, at(2, 0.2), ".reporting"), ElementsAre("pause 0", "launch 1"));
  EXPECT_THAT(driver.report(1, at(2, 0.3), ".reporting"), ElementsAre("pause 1", "launch 2"));
  EXPECT_THAT(driver.report(2, at(2, 0.4), ".reporting"), ElementsAre("pause 2", "resume 0"));
}

TEST(Experiment, APausedTrialKeepsItsWorkerAndGivesUpItsSlot) {
  Driver driver(pbt(2), 1);
  driver.report(0, at(2, 0.2), ".reporting");
  EXPECT_EQ(driver.trial(0).status, TrialStatus::paused);
  EXPECT_EQ(driver.trial(0).worker, WorkerState::parked);
  EXPECT_FALSE(driver.trial(0).held);
  EXPECT_THAT(driver.all<AnswerReport>(), IsEmpty());
}

TEST(Experiment, AnExploitStopsTheTargetAndStartsItFromTheDonorsCheckpoint) {
  Driver driver(pbt(2), 2);
  driver.report(0, at(2, 0.9), ".reporting_1");
  EXPECT_THAT(driver.report(1, at(2, 0.1), ".reporting_1"), ElementsAre("exploit 1"));
  const Config explored = driver.all<LogExploit>().at(0)->new_config;
  ASSERT_EQ(driver.all<AnswerReport>().size(), 1u);
  EXPECT_EQ(driver.all<AnswerReport>()[0]->verdict, channel::Verdict::stop);
  EXPECT_THAT(driver.feed(FunctionReturned{1, 1}), ElementsAre("launch 1"));
  ASSERT_EQ(driver.all<Launch>().size(), 1u);
  EXPECT_THAT(driver.all<Launch>()[0]->checkpoint, HasSubstr("00000_lr=0."));
  EXPECT_THAT(driver.all<Launch>()[0]->checkpoint, HasSubstr("/checkpoint_000000"));
  EXPECT_EQ(driver.all<Launch>()[0]->step, 1);
  EXPECT_EQ(driver.all<Launch>()[0]->config, explored);
  EXPECT_EQ(driver.trial(0).status, TrialStatus::running);
}

TEST(Experiment, ATrialThatHasNotSavedFailsAtItsFirstInterval) {
  Driver driver(pbt(3), 3);
  EXPECT_THAT(driver.report(0, at(1, 0.9)), IsEmpty());
  EXPECT_THAT(driver.report(0, at(2, 0.9)), ElementsAre("fail 0"));
  EXPECT_THAT(driver.trial(0).error, HasSubstr("first interval (every 2 of training_iteration) without"));
  EXPECT_THAT(driver.trial(0).error, HasSubstr("tune::report(metrics, writer)"));
  EXPECT_THAT(driver.report(1, at(2, 0.1), ".reporting"), IsEmpty()) << "its checkpoint comes in time";
  EXPECT_THAT(driver.report(1, at(4, 0.1)), IsEmpty()) << "an older checkpoint will do";
}

TEST(Experiment, ATrialThatNobodyCanExploitNeedsNoCheckpoint) {
  TunerOptions options = pbt(2);
  options.tune_config.scheduler.get<PopulationBasedTraining>().quantile_fraction = 0;
  Driver driver(options, 2);
  Driver alone(pbt(1), 1);
  for (const std::int64_t iteration : {2, 4, 6, 8, 10}) {
    EXPECT_THAT(driver.report(0, at(iteration, 0.9)), IsEmpty());
    EXPECT_THAT(alone.report(0, at(iteration, 0.9)), IsEmpty());
  }
}

std::string said(const Driver& driver) {
  std::string text;
  for (const Say* say : driver.all<Say>()) text += say->text + "\n";
  return text;
}

// Trial 2 was in the middle when it reported; it is the best now only because another trial has become worse since.
TEST(Experiment, WhoeverIsAmongTheBestNowIsADonorWithItsLatestCheckpoint) {
  TunerOptions options = pbt(3);
  options.tune_config.scheduler.get<PopulationBasedTraining>().quantile_fraction = 0.3;
  options.run_config.checkpoint_config.num_to_keep = 1;
  Driver driver(options, 3);
  driver.report(0, at(2, 0.9), ".reporting");
  EXPECT_THAT(driver.report(1, at(2, 0.1), ".reporting_1"), ElementsAre("exploit 1"));
  driver.feed(FunctionReturned{1, 1});
  EXPECT_THAT(driver.report(2, at(2, 0.5), ".reporting"), IsEmpty());
  EXPECT_THAT(driver.report(2, at(3, 0.6), ".reporting"), IsEmpty()) << "between two intervals";
  EXPECT_THAT(driver.report(0, at(4, 0.2)), IsEmpty());
  EXPECT_THAT(driver.report(1, at(4, 0.05)), ElementsAre("exploit 1"));
  EXPECT_EQ(driver.all<LogExploit>().at(0)->donor, 2u);
  EXPECT_EQ(driver.all<LogExploit>().at(0)->donor_iteration, 3);
  EXPECT_THAT(said(driver),
              HasSubstr("Cloning trial 00002 (score = 0.500000) into trial 00001 (score = 0.050000), from "
                        "checkpoint_000001 of iteration 3\n"));
}

TEST(Experiment, ACheckpointThatIsBeingClonedIsThereThoughItsTrialHasNewerOnes) {
  TunerOptions options = pbt(2);
  options.run_config.checkpoint_config.num_to_keep = 1;
  Driver driver(options, 2);
  driver.report(0, at(2, 0.9), ".reporting");
  EXPECT_THAT(driver.report(1, at(2, 0.1), ".reporting_1"), ElementsAre("exploit 1"));
  driver.report(0, at(3, 0.9), ".reporting");
  EXPECT_THAT(driver.all<DeleteCheckpoint>(), IsEmpty());
  EXPECT_THAT(driver.feed(FunctionReturned{1, 1}), ElementsAre("launch 1"));
  EXPECT_THAT(driver.all<Launch>().at(0)->checkpoint, HasSubstr("/checkpoint_000000"));
  EXPECT_THAT(driver.report(1, at(3, 0.9), ".reporting"), IsEmpty());
  for (const DeleteCheckpoint* deleted : driver.all<DeleteCheckpoint>())
    EXPECT_THAT(deleted->directory, Not(HasSubstr("00000_lr")))
        << "the worker that was started from it may yet read it";
  driver.feed(FunctionReturned{1, 2});
  ASSERT_EQ(driver.all<DeleteCheckpoint>().size(), 1u);
  EXPECT_THAT(driver.all<DeleteCheckpoint>()[0]->directory,
              AllOf(HasSubstr("00000_lr"), HasSubstr("/checkpoint_000000")));
}

// Trial 0 was no donor when it reported, so the core did not ask for the checkpoint that it offered.
TEST(Experiment, ADonorThatHasNoCheckpointYetIsNotExploitedAndThatIsSaid) {
  Driver driver(pbt(2), 2);
  driver.report(1, at(2, 0.5), ".reporting");
  EXPECT_THAT(driver.feed(ResultReported{0, 1, {.step = 1, .metrics = at(2, 0.5), .offers_checkpoint = true}}),
              IsEmpty());
  EXPECT_THAT(driver.report(1, at(4, 0.1)), IsEmpty());
  EXPECT_THAT(said(driver), HasSubstr("trial 00000 has no checkpoint yet. Skip exploit for trial 00001"));
}

TEST(Experiment, ADonorWithoutACheckpointOfItsOwnGivesTheOneThatItContinuedFrom) {
  TunerOptions options = pbt(3);
  options.tune_config.scheduler.get<PopulationBasedTraining>().quantile_fraction = 0.3;
  Driver driver(options, 3);
  driver.report(0, at(2, 0.9), ".reporting");
  EXPECT_THAT(driver.report(1, at(2, 0.1), ".reporting_1"), ElementsAre("exploit 1"));
  driver.feed(FunctionReturned{1, 1});
  EXPECT_THAT(driver.report(1, at(4, 0.95)), IsEmpty());
  EXPECT_THAT(driver.report(2, at(2, 0.3), ".reporting"), ElementsAre("exploit 2"));
  EXPECT_THAT(said(driver),
              HasSubstr("Cloning trial 00001 (score = 0.950000) into trial 00002 (score = 0.300000), from "
                        "trial 00000's checkpoint_000000 of iteration 2\n"));
}

TEST(Experiment, ADonorThatDoesNoBetterIsNotExploited) {
  Driver driver(pbt(2), 2);
  for (const std::int64_t iteration : {2, 4, 6}) {
    EXPECT_THAT(driver.report(0, at(iteration, 0.5), ".reporting"), IsEmpty());
    EXPECT_THAT(driver.report(1, at(iteration, 0.5), ".reporting"), IsEmpty());
  }
}

// As in Ray Tune: a score that is no number says neither that a trial is bad nor that it is good.
TEST(Experiment, ATrialWhoseScoreIsNanIsNeitherReplacedNorADonor) {
  Driver driver(pbt(3), 3);
  EXPECT_THAT(driver.report(0, at(2, 0.9), ".reporting"), IsEmpty());
  EXPECT_THAT(driver.report(1, at(2, std::nan("")), ".reporting"), IsEmpty());
  EXPECT_THAT(driver.report(2, at(2, 0.1), ".reporting"), ElementsAre("exploit 2"));
  EXPECT_EQ(driver.all<LogExploit>().at(0)->donor, 0u);
  EXPECT_THAT(driver.report(1, at(4, 0.05), ".reporting"), ElementsAre("exploit 1")) << "its next score is a number";
}

TEST(Experiment, AReportOfASupersededWorkerIsRefused) {
  Driver driver(pbt(2), 2);
  driver.report(0, at(2, 0.9), ".reporting_1");
  EXPECT_THAT(driver.report(1, at(2, 0.1), ".reporting_1"), ElementsAre("exploit 1"));
  driver.feed(FunctionReturned{1, 1});
  const Metrics before = driver.trial(1).last_result;
  driver.feed(ResultReported{1, 1, {99, at(99, 1), ".reporting_9"}});
  ASSERT_EQ(driver.all<AnswerReport>().size(), 1u);
  EXPECT_EQ(driver.all<AnswerReport>()[0]->verdict, channel::Verdict::stop);
  EXPECT_EQ(driver.all<DiscardDirectory>().size(), 1u);
  EXPECT_EQ(driver.trial(1).last_result, before);
}

TEST(Experiment, AThresholdEndsTheTrialWithoutAskingTheScheduler) {
  TunerOptions options = pbt(2);
  options.run_config.stop = {{"eval/accuracy", 0.9}};
  Driver driver(options, 2);
  EXPECT_THAT(driver.report(0, {{"eval", {{"accuracy", 0.95}}}}), ElementsAre("end 0"));
  EXPECT_TRUE(driver.all<LogResult>().at(0)->done);
  EXPECT_EQ(driver.trial(0).status, TrialStatus::terminated);
}

// Snapshots have the state of ended trials from their last change.
TEST(Experiment, AnEndedTrialWhoseWorkerIsGoneWithItsControllerIsSavedAgain) {
  TunerOptions options = fifo(2);
  options.run_config.stop = {{"training_iteration", 2}};
  Driver driver(options, 2);
  EXPECT_THAT(driver.report(0, at(2, 0.5)), ElementsAre("end 0"));
  driver.feed(ControllerStarted{{.cpus = 2}});
  EXPECT_EQ(driver.trial(0).worker, WorkerState::none);
  std::vector<TrialIndex> saved;
  for (const SaveTrial* save : driver.all<SaveTrial>()) saved.push_back(save->trial);
  EXPECT_THAT(saved, Contains(0u));
  driver.feed(ControllerStarted{{.cpus = 2}});
  saved.clear();
  for (const SaveTrial* save : driver.all<SaveTrial>()) saved.push_back(save->trial);
  EXPECT_THAT(saved, Not(Contains(0u))) << "nothing has changed";
}

TEST(Experiment, AMissingMetricFailsItsTrialAndSaysWhatThereIs) {
  Driver driver(pbt(2), 2);
  EXPECT_THAT(driver.report(0, {{"training_iteration", 2}, {"accuracy", 1}}), ElementsAre("fail 0"));
  EXPECT_THAT(driver.trial(0).error, HasSubstr("no number \"score\""));
  EXPECT_THAT(driver.trial(0).error, HasSubstr("training_iteration, accuracy"));
  EXPECT_EQ(driver.trial(1).status, TrialStatus::running);
}

TEST(Experiment, ANameThatTheFirstResultDoesNotHaveIsWarnedAboutOnce) {
  TunerOptions options = fifo(1);
  options.run_config.stop = {{"acuracy", 0.9}};
  Driver driver(options, 1);
  driver.report(0, {{"accuracy", 0.5}});
  ASSERT_EQ(driver.all<Say>().size(), 1u);
  EXPECT_THAT(driver.all<Say>()[0]->text, HasSubstr("no \"acuracy\", which is a stop criterion. It has: accuracy"));
  driver.report(0, {{"accuracy", 0.6}});
  EXPECT_THAT(driver.all<Say>(), IsEmpty());
}

TEST(Experiment, AMetricThatIsTextIsWarnedAboutOnce) {
  TunerOptions options = fifo(1);
  options.tune_config.metric = maximize("accuracy");
  options.run_config.stop = {{"loss", at_most(0.1)}};
  Driver driver(options, 1);
  driver.report(0, {{"accuracy", 0.5}, {"loss", 1}, {"note", "fine"}});
  EXPECT_THAT(driver.all<Say>(), IsEmpty());
  driver.report(0, {{"accuracy", "0.93"}, {"loss", "0.05"}});
  ASSERT_EQ(driver.all<Say>().size(), 2u);
  EXPECT_THAT(driver.all<Say>()[0]->text, HasSubstr("trial 00000 has reported \"accuracy\" as text, \"0.93\""));
  EXPECT_THAT(driver.all<Say>()[1]->text, HasSubstr("trial 00000 has reported \"loss\" as text"));
  driver.report(0, {{"accuracy", "0.94"}, {"loss", "0.04"}});
  EXPECT_THAT(driver.all<Say>(), IsEmpty());
}

TEST(Experiment, AStepThatIsReportedAgainAfterAnInterruptionCountsOnce) {
  Driver driver(fifo(1), 1);
  driver.report(0, {{"a", 1}}, ".reporting_1");
  driver.report(0, {{"a", 2}});
  EXPECT_THAT(driver.feed(ControllerStarted{{.cpus = 1}}), ElementsAre("launch 0"));
  EXPECT_EQ(driver.all<Launch>().at(0)->step, 1);
  driver.feed(ResultReported{0, 2, {2, {{"a", 2}}, ""}});
  EXPECT_THAT(driver.all<LogResult>(), IsEmpty());
  driver.feed(ResultReported{0, 2, {3, {{"a", 3}}, ""}});
  EXPECT_EQ(driver.all<LogResult>().size(), 1u);
}

// ---- failures, limits, interrupts

TEST(Experiment, AFailureWithinTheBudgetIsTriedAgainFromTheLatestCheckpoint) {
  TunerOptions options = fifo(1);
  options.run_config.failure_config.max_failures = 1;
  Driver driver(options, 1);
  driver.report(0, {{"a", 1}}, ".reporting_1");
  EXPECT_THAT(driver.feed(FunctionThrew{0, 1, "bad luck"}), ElementsAre("retry 0", "launch 0"));
  EXPECT_EQ(driver.all<Launch>().at(0)->step, 1);
  EXPECT_EQ(driver.all<LogError>().at(0)->message, "bad luck");
  EXPECT_THAT(driver.feed(FunctionThrew{0, 2, "again"}), ElementsAre("fail 0"));
}

TEST(Experiment, FailuresBeforeTheFirstReportAfterACheckpointHaveTheirOwnBudget) {
  TunerOptions options = fifo(1);
  options.run_config.failure_config.max_restore_failures = 2;
  Driver driver(options, 1);
  driver.report(0, {{"a", 1}}, ".reporting_1");
  driver.feed(ControllerStarted{{.cpus = 1}});
  EXPECT_THAT(driver.feed(FunctionThrew{0, 2, "cannot load"}), ElementsAre("retry 0", "launch 0"));
  EXPECT_THAT(driver.feed(FunctionThrew{0, 3, "cannot load"}), ElementsAre("retry 0", "launch 0"));
  EXPECT_EQ(driver.trial(0).failures, 0);
  EXPECT_THAT(driver.feed(FunctionThrew{0, 4, "cannot load"}), ElementsAre("fail 0"));
}

TEST(Experiment, ATrialThatFailsAgainAndAgainWaitsLongerEachTimeAndOthersRunMeanwhile) {
  TunerOptions options = fifo(2);
  options.run_config.failure_config.max_failures = -1;
  Driver driver(options, 1);
  const auto fails = [&] { return driver.feed(FunctionThrew{0, driver.trial(0).attempt, "bad luck"}); };
  EXPECT_THAT(fails(), ElementsAre("retry 0", "launch 0"));
  EXPECT_THAT(fails(), ElementsAre("retry 0", "launch 0"));
  EXPECT_THAT(fails(), ElementsAre("retry 0", "launch 1"));
  StartTimer pause = *driver.all<StartTimer>().at(0);
  EXPECT_THAT(driver.feed(FunctionReturned{1, 1}), ElementsAre("end 1"));
  EXPECT_FALSE(driver.finished());
  for (const double seconds : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0}) {
    EXPECT_EQ(pause.timer, (Timer{Timer::Kind::retry, 0, driver.trial(0).attempt}));
    EXPECT_EQ(pause.seconds, seconds);
    EXPECT_THAT(driver.feed(TimerFired{pause.timer}), ElementsAre("launch 0"));
    EXPECT_THAT(driver.feed(TimerFired{pause.timer}), IsEmpty());
    EXPECT_THAT(fails(), ElementsAre("retry 0"));
    pause = *driver.all<StartTimer>().at(0);
  }
}

TEST(Experiment, ANewResultOrAnotherControllerEndsTheWaitBetweenRetries) {
  TunerOptions options = fifo(1);
  options.run_config.failure_config.max_failures = -1;
  Driver driver(options, 1);
  const auto fails = [&] { return driver.feed(FunctionThrew{0, driver.trial(0).attempt, "bad luck"}); };
  fails();
  fails();
  EXPECT_THAT(fails(), ElementsAre("retry 0"));
  EXPECT_THAT(driver.feed(ControllerStarted{{.cpus = 1}}), ElementsAre("launch 0"));
  driver.report(0, {{"a", 1}});
  EXPECT_THAT(fails(), ElementsAre("retry 0", "launch 0"));
  driver.feed(ResultReported{0, driver.trial(0).attempt, {1, {{"a", 1}}, ""}});  // repeated: no progress
  EXPECT_THAT(fails(), ElementsAre("retry 0", "launch 0"));
  EXPECT_THAT(fails(), ElementsAre("retry 0"));
}

TEST(Experiment, AWorkerThatDoesNotReportInTimeIsEndedAndThatIsItsFailure) {
  TunerOptions options = fifo(1);
  options.run_config.limits.time_between_reports = Seconds(5);
  Driver driver(options, 1);
  ASSERT_EQ(driver.all<StartTimer>().size(), 1u);
  EXPECT_EQ(driver.all<StartTimer>()[0]->seconds, 5);
  const Timer timer = driver.all<StartTimer>()[0]->timer;
  EXPECT_THAT(driver.feed(TimerFired{timer}), ElementsAre("kill 0"));
  ASSERT_EQ(driver.all<KillWorker>().size(), 1u);
  EXPECT_THAT(driver.feed(WorkerEnded{0, 1, {engine::Exit::Kind::signal, 9, {}}}), ElementsAre("fail 0"));
  EXPECT_THAT(driver.trial(0).error, HasSubstr("hung"));
}

TEST(Experiment, TheTimeLimitIsOfTheTrialAndCannotBeRetried) {
  TunerOptions options = fifo(1);
  options.run_config.limits.time = Seconds(10);
  options.run_config.failure_config.max_failures = 3;
  Driver driver(options, 1);
  driver.report(0, {{"time_total_s", 7.5}});
  EXPECT_EQ(driver.all<StartTimer>().at(0)->seconds, 2.5);
  EXPECT_THAT(driver.report(0, {{"time_total_s", 10.5}}), ElementsAre("fail 0"));
  EXPECT_THAT(driver.trial(0).error, HasSubstr("limit of 10 s"));
}

TEST(Experiment, ATimerOfAWorkerThatHasReportedMeansNothing) {
  TunerOptions options = pbt(2);
  options.run_config.limits.time_between_reports = Seconds(5);
  Driver driver(options, 1);
  const Timer timer = driver.all<StartTimer>().at(0)->timer;
  driver.report(0, at(2, 0.2));  // paused, so not running
  EXPECT_THAT(driver.feed(TimerFired{timer}), IsEmpty());
}

TEST(Experiment, AnInterruptLetsRunningTrialsReportOnceMoreAndStartsNobody) {
  Driver driver(pbt(3), 2);
  EXPECT_THAT(driver.report(0, at(2, 0.5), ".reporting"), ElementsAre("pause 0", "launch 2"));
  EXPECT_THAT(driver.feed(ExperimentInterrupted{}), ElementsAre("interrupt 0"));
  EXPECT_THAT(driver.report(1, at(1, 0.5)), ElementsAre("interrupt 1"));
  EXPECT_EQ(driver.all<LogResult>().size(), 1u) << "it counts";
  EXPECT_THAT(driver.feed(FunctionReturned{0, 1}), IsEmpty());
  EXPECT_THAT(driver.feed(TimerFired{{Timer::Kind::stopping, 2, 1}}), ElementsAre("kill 2"));
  for (const TrialIndex trial : {0u, 1u, 2u}) {
    EXPECT_FALSE(driver.finished());
    EXPECT_THAT(driver.feed(WorkerEnded{trial, 1, kClean}), IsEmpty());
  }
  EXPECT_TRUE(driver.finished());
  EXPECT_THAT(driver.feed(ControllerStarted{{.cpus = 2}}), ElementsAre("launch 1", "launch 2"));
}

TEST(Experiment, WhoRanWhenItWasInterruptedGoesOnFirst) {
  TunerOptions options = fifo(3);
  options.tune_config.scheduler = LastFirst{};
  options.run_config.failure_config.max_failures = 5;
  for (const bool reports : {true, false}) {
    Driver driver(options, 1);
    EXPECT_THAT(driver.decided, ElementsAre("launch 2"));
    for (const std::int64_t attempt : {1, 2}) driver.feed(FunctionThrew{2, attempt, "no"});
    EXPECT_THAT(driver.feed(FunctionThrew{2, 3, "no"}), ElementsAre("retry 2", "launch 1")) << "it waits for a second";
    driver.feed(TimerFired{{Timer::Kind::retry, 2, 3}});
    driver.feed(ExperimentInterrupted{});
    if (reports) {
      EXPECT_THAT(driver.report(1, {{"a", 1}}), ElementsAre("interrupt 1"));
    } else {
      EXPECT_THAT(driver.feed(TimerFired{{Timer::Kind::stopping, 1, 1}}), ElementsAre("kill 1"));
    }
    driver.feed(WorkerEnded{1, 1, kClean});
    EXPECT_THAT(driver.feed(ControllerStarted{{.cpus = 1}}), ElementsAre("launch 1")) << reports;
  }
}

TEST(Experiment, APopulationThatASearcherNeverCompletesIsAnError) {
  TunerOptions options = pbt(3);
  options.tune_config.searcher = ConcurrencyLimiter{.searcher = RandomSearch{}, .max_concurrent = 2};
  EXPECT_THAT(message_of<InvalidArgument>([&] { Driver(options, 2); }),
              HasSubstr("the searcher ConcurrencyLimiter waits for the end of a trial, and under the scheduler "
                        "PopulationBasedTraining none begins before all 3 are made"));
  options.tune_config.searcher = ConcurrencyLimiter{.searcher = RandomSearch{}, .max_concurrent = 3};
  EXPECT_THAT(Driver(options, 2).decided, ElementsAre("launch 0", "launch 1"));
}

TEST(Experiment, WhoFailsWhileItIsInterruptedIsSetAside) {
  Driver driver(fifo(3), 3);
  driver.report(0, {{"a", 1}});
  driver.feed(ExperimentInterrupted{});
  EXPECT_THAT(driver.feed(WorkerEnded{0, 1, {engine::Exit::Kind::signal, SIGTERM, {}}}), ElementsAre("interrupt 0"));
  EXPECT_THAT(driver.feed(FunctionThrew{1, 1, "its program was ended"}), ElementsAre("interrupt 1"));
  EXPECT_THAT(driver.all<Say>().at(0)->text, AllOf(HasSubstr("00001"), HasSubstr("its program was ended")));
  EXPECT_THAT(driver.all<LogError>(), IsEmpty());
  EXPECT_THAT(driver.feed(WorkerEnded{1, 1, kClean}), IsEmpty());
  EXPECT_THAT(driver.feed(TimerFired{{Timer::Kind::stopping, 2, 1}}), ElementsAre("kill 2"));
  EXPECT_THAT(driver.feed(WorkerEnded{2, 1, {engine::Exit::Kind::signal, SIGKILL, {}}}), IsEmpty());
  EXPECT_TRUE(driver.finished());
  for (const TrialIndex trial : {0u, 1u, 2u}) {
    EXPECT_EQ(driver.trial(trial).status, TrialStatus::pending);
    EXPECT_EQ(driver.trial(trial).failures, 0);
  }
  EXPECT_THAT(driver.feed(ControllerStarted{{.cpus = 3}}), ElementsAre("launch 0", "launch 1", "launch 2"));
}

TEST(Experiment, ALimitThatATrialBreaksCountsAlsoWhileItIsInterrupted) {
  TunerOptions options = fifo(1);
  options.run_config.limits.time_between_reports = Seconds(10);
  Driver driver(options, 1);
  driver.feed(TimerFired{{Timer::Kind::running, 0, 1}});
  driver.feed(ExperimentInterrupted{});
  EXPECT_THAT(driver.feed(WorkerEnded{0, 1, {engine::Exit::Kind::signal, SIGKILL, {}}}), ElementsAre("fail 0"));
}

std::vector<std::string> words_of(const Driver& driver) {
  std::vector<std::string> texts;
  for (const Say* say : driver.all<Say>()) texts.push_back(say->text);
  return texts;
}

TEST(Experiment, ARestoreThatHasOnlyFailuresSaysWhatWouldTakeThemUp) {
  const auto hint = AllOf(HasSubstr("2 of 3 trials have failed"), HasSubstr("RestoreOptions::resume_errored"),
                          HasSubstr("restart_errored"));
  Driver driver(fifo(3), 3);
  driver.feed(FunctionThrew{0, 1, "bad luck"});
  driver.feed(FunctionReturned{1, 1});
  driver.feed(ControllerStarted{{.cpus = 3}});
  EXPECT_THAT(words_of(driver), Not(Contains(hint))) << "one goes on";
  driver.feed(FunctionThrew{2, 2, "bad luck"});
  driver.feed(ControllerStarted{{.cpus = 3}});
  EXPECT_THAT(words_of(driver), Contains(hint));
  driver.feed(ControllerStarted{{.cpus = 3}, ControllerStarted::Errored::resume});
  EXPECT_THAT(words_of(driver), Not(Contains(hint)));
}

TEST(Experiment, FailFastEndsTheOthersAsTerminated) {
  TunerOptions options = fifo(3);
  options.run_config.failure_config.fail_fast = true;
  Driver driver(options, 2);
  EXPECT_THAT(driver.feed(FunctionThrew{0, 1, "bad luck"}), ElementsAre("fail 0", "end 1"));
  EXPECT_EQ(driver.trial(1).worker, WorkerState::stopping);
  driver.feed(WorkerEnded{0, 1, kClean});
  EXPECT_FALSE(driver.finished());
  driver.feed(ResultReported{1, 1, {1, {{"a", 1}}, ""}});
  EXPECT_EQ(driver.all<AnswerReport>().at(0)->verdict, channel::Verdict::stop);
  driver.feed(WorkerEnded{1, 1, kClean});
  EXPECT_TRUE(driver.finished());
}

TEST(Experiment, ABarrierThatSomebodyDoesNotReachOpensAtItsDeadline) {
  TunerOptions options = pbt(3);
  auto& settings = options.tune_config.scheduler.get<PopulationBasedTraining>();
  settings.synch = true;
  settings.synch_deadline = 60;
  Driver driver(options, 3);
  EXPECT_THAT(driver.report(0, at(2, 0.9), ".reporting_1"), ElementsAre("pause 0"));
  const auto started = driver.all<StartTimer>();
  ASSERT_EQ(started.size(), 1u);
  EXPECT_EQ(started[0]->seconds, 60);
  const Timer barrier = started[0]->timer;
  EXPECT_THAT(driver.report(1, at(2, 0.1), ".reporting_1"), ElementsAre("pause 1"));
  EXPECT_THAT(driver.all<StartTimer>(), IsEmpty()) << "it runs since the first one came";
  EXPECT_THAT(driver.feed(TimerFired{barrier}), ElementsAre("exploit 1", "resume 0"));
  EXPECT_THAT(driver.all<Say>().at(0)->text, HasSubstr("1 of 3 trials have not reached"));
  EXPECT_THAT(driver.feed(TimerFired{barrier}), IsEmpty()) << "it was another barrier's";
  // The late trial continues to the next barrier with the others.
  EXPECT_THAT(driver.report(2, at(2, 0.5), ".reporting_1"), ElementsAre("pause 2", "resume 2"));
}

TEST(Experiment, ALostCheckpointIsReplacedByItsNewestAncestor) {
  Driver driver(fifo(1), 1);
  driver.report(0, {{"a", 1}}, ".reporting_1");
  driver.report(0, {{"a", 2}}, ".reporting_2");
  ControllerStarted started{.resources = {.cpus = 1}};
  started.lost_checkpoints = {2};
  EXPECT_THAT(driver.feed(started), ElementsAre("lose 0", "launch 0"));
  EXPECT_EQ(driver.all<Launch>().at(0)->checkpoint, "00000/checkpoint_000000");
  EXPECT_EQ(driver.all<DeleteCheckpoint>().at(0)->id, 2);
  started.lost_checkpoints = {1};
  EXPECT_THAT(driver.feed(started), ElementsAre("lose 0", "launch 0"));
  EXPECT_EQ(driver.all<Launch>().at(0)->checkpoint, "");
}

TEST(Experiment, TheNewestSafeCheckpointStaysUntilANewerOneIsSafe) {
  TunerOptions options = fifo(1);
  options.run_config.checkpoint_config.num_to_keep = 1;
  Driver driver(options, 1);
  driver.report(0, {{"a", 1}}, ".reporting_1");
  driver.feed(CheckpointsSynced{{1}});
  driver.report(0, {{"a", 2}}, ".reporting_2");
  EXPECT_THAT(driver.all<DeleteCheckpoint>(), IsEmpty());
  driver.report(0, {{"a", 3}}, ".reporting_3");
  EXPECT_EQ(driver.all<DeleteCheckpoint>().at(0)->id, 2) << "it never was safe";
  driver.feed(CheckpointsSynced{{3}});
  EXPECT_EQ(driver.all<DeleteCheckpoint>().at(0)->id, 1);
}

TEST(Experiment, MaxConcurrentTrialsLimitsThoseThatRun) {
  TunerOptions options = fifo(5);
  options.tune_config.max_concurrent_trials = 2;
  Driver driver(options, 4);
  EXPECT_THAT(driver.decided, ElementsAre("launch 0", "launch 1"));
}

TunerOptions pbt_without_exploits(std::int64_t trials, const Parking& parking) {
  TunerOptions options = pbt(trials);
  options.tune_config.parking = parking;
  options.tune_config.scheduler.get<PopulationBasedTraining>().quantile_fraction = 0;
  return options;
}

// Reports two more steps, up to the next interval.
std::vector<std::string> report_interval(Driver& driver, TrialIndex trial, bool saves_the_last) {
  const std::int64_t step = driver.trial(trial).step;
  driver.report(trial, {{"score", 1}, {"training_iteration", step + 1}}, ".reporting_1");
  return driver.report(trial, {{"score", 1}, {"training_iteration", step + 2}}, saves_the_last ? ".reporting_2" : "");
}

TEST(Experiment, WhereTooManyAreParkedOneIsEndedThatLosesNothingElseTheOneThatWaitsLongest) {
  Driver driver(pbt_without_exploits(3, {.max_workers = 1}), 1);
  EXPECT_THAT(report_interval(driver, 0, false), ElementsAre("pause 0", "launch 1"));
  EXPECT_THAT(report_interval(driver, 1, true), ElementsAre("pause 1", "unpark 1", "launch 2"));
  EXPECT_EQ(driver.trial(1).worker, WorkerState::stopping);
  EXPECT_EQ(driver.trial(1).status, TrialStatus::paused);
  EXPECT_EQ(driver.trial(0).worker, WorkerState::parked);
  EXPECT_THAT(report_interval(driver, 2, false), ElementsAre("pause 2", "unpark 0", "resume 2"));
  EXPECT_THAT(driver.feed(FunctionReturned{1, 1}), IsEmpty());
  EXPECT_THAT(report_interval(driver, 2, true), ElementsAre("pause 2", "launch 1"));
  EXPECT_EQ(driver.all<Launch>().at(0)->step, 2);
}

TEST(Experiment, MemoryThatRunsShortEndsOneParkedWorkerAfterTheOther) {
  Driver driver(pbt_without_exploits(4, {}), 1);
  report_interval(driver, 0, false);
  report_interval(driver, 1, true);
  ASSERT_EQ(driver.parked_workers(), 2);
  EXPECT_THAT(driver.feed(MemoryRunsShort{}), ElementsAre("unpark 1"));
  EXPECT_THAT(driver.feed(MemoryRunsShort{}), ElementsAre("unpark 0"));  // the trial will repeat a step
  EXPECT_THAT(driver.feed(MemoryRunsShort{}), IsEmpty());
  EXPECT_EQ(driver.parked_workers(), 0);
}

TEST(Experiment, ATrialThatUsesAGpuGivesItBackAsAWholeWhenItIsPaused) {
  Driver driver(pbt_without_exploits(2, {}), {.cpus = 8, .gpus = 1}, {.cpus = 1, .gpus = 1});
  ASSERT_THAT(driver.decided, ElementsAre("launch 0"));
  EXPECT_EQ(driver.all<Launch>().at(0)->place.gpus, resources::Gpus{0});
  EXPECT_THAT(driver.report(0, {{"score", 1}, {"training_iteration", 2}}, ".reporting_1"), ElementsAre("pause 0"));
  EXPECT_EQ(driver.trial(0).worker, WorkerState::stopping);
  EXPECT_THAT(driver.feed(FunctionReturned{0, 1}), ElementsAre("launch 1"));  // not before the worker unwinds
}

TEST(Experiment, AParkedWorkerGoesOnWithTheGpusThatHaveItsData) {
  Driver driver(pbt_without_exploits(3, {.with_gpus = true}), {.cpus = 8, .gpus = 2}, {.cpus = 1, .gpus = 1});
  ASSERT_EQ(driver.trial(1).gpus, resources::Gpus{1});
  EXPECT_THAT(driver.report(1, {{"score", 1}, {"training_iteration", 2}}), ElementsAre("pause 1", "launch 2"));
  EXPECT_EQ(driver.trial(2).gpus, resources::Gpus{1});
  // Trial 0's GPU becomes free for good, but trial 1's data are on the other GPU.
  EXPECT_THAT(driver.feed(FunctionReturned{0, 1}), ElementsAre("end 0"));
  EXPECT_THAT(driver.report(2, {{"score", 1}, {"training_iteration", 2}}), ElementsAre("pause 2", "resume 1"));
  EXPECT_EQ(driver.trial(1).gpus, resources::Gpus{1});
}

double even_widths_only(const Config& config) {
  if (config.get<int>("width") % 2 != 0) throw std::runtime_error("an odd width");
  return 1;
}

Config refuse_to_explore(Config) { throw std::runtime_error("no good"); }

TEST(Experiment, ATrialWhoseConfigCannotBeMadeFailsAndTheOthersRun) {
  TunerOptions options = fifo(2);
  options.param_space = {{"width", grid_search({1, 2, 3, 4})}, {"height", fn<even_widths_only>}};
  Driver driver(options, 1);
  EXPECT_EQ(driver.trial(0).status, TrialStatus::error);
  EXPECT_THAT(driver.trial(0).error, HasSubstr("fn<even_widths_only> of \"height\" threw: an odd width"));
  EXPECT_THAT(driver.decided, ElementsAre("fail 0", "launch 1"));
  for (const TrialIndex trial : {1u, 3u, 5u, 7u}) {
    EXPECT_FALSE(driver.finished());
    driver.feed(FunctionReturned{trial, 1});
    driver.feed(WorkerEnded{trial, 1, {}});
  }
  EXPECT_TRUE(driver.finished());
  EXPECT_EQ(driver.trial(6).status, TrialStatus::error);
}

TEST(Experiment, ABeginningInWhichEverythingFailsSaysNothingOfARestore) {
  TunerOptions options = fifo(1);
  options.param_space = {{"width", grid_search({1, 3})}, {"height", fn<even_widths_only>}};
  const Driver driver(options, 1);
  EXPECT_TRUE(driver.finished());
  EXPECT_EQ(driver.trial(1).status, TrialStatus::error);
  EXPECT_THAT(words_of(driver), Not(Contains(HasSubstr("resume_errored"))));
}

TEST(Experiment, AFunctionThatThrowsWhileExploringLeavesTheTrialAsItIs) {
  TunerOptions options = pbt(2);
  auto& scheduler = options.tune_config.scheduler.get<PopulationBasedTraining>();
  scheduler.custom_explore_fn = fn<refuse_to_explore>;
  Driver driver(options, 2);
  driver.report(1, {{"score", 1}, {"training_iteration", 2}}, ".reporting_1");
  driver.report(0, {{"score", 2}, {"training_iteration", 2}}, ".reporting_0");
  driver.report(1, {{"score", 1}, {"training_iteration", 4}});
  EXPECT_EQ(driver.trial(1).status, TrialStatus::running);
  EXPECT_THAT(said(driver),
              HasSubstr("cannot explore the config of trial 00000: no good. Skip exploit for trial 00001"));
}

Config lack_memory(Config) { throw std::bad_alloc(); }

TEST(Experiment, NothingIsDecidedByAFunctionThatLacksMemory) {
  TunerOptions options = pbt(2);
  auto& scheduler = options.tune_config.scheduler.get<PopulationBasedTraining>();
  scheduler.custom_explore_fn = fn<lack_memory>;
  Driver driver(options, 2);
  driver.report(1, {{"score", 1}, {"training_iteration", 2}}, ".reporting_1");
  driver.report(0, {{"score", 2}, {"training_iteration", 2}}, ".reporting_0");
  EXPECT_THROW(driver.report(1, {{"score", 1}, {"training_iteration", 4}}), std::bad_alloc);
}

// ---- replaying a schedule

TunerOptions replay(PolicySchedule schedule) {
  TunerOptions options{.param_space = {{"lr", uniform(0, 1)}, {"seed", randint(0, 1000)}, {"data", "here"}},
                       .tune_config = {.scheduler = PopulationBasedTrainingReplay{.schedule = std::move(schedule)}}};
  std::vector<std::string> notes;
  options.tune_config.scheduler.get<PopulationBasedTrainingReplay>().complete(options, notes);
  return options;
}

Metrics at(std::int64_t iteration) { return {{"training_iteration", iteration}}; }

const PolicySchedule kTwoChanges{{{"lr", 0.1}}, {{2, {{"lr", 0.2}}}, {4, {{"lr", 0.4}}}}};

// Unwinds and ends trial 0's worker, and returns the decisions that follow.
std::vector<std::string> restart(Driver& driver) {
  driver.feed(FunctionReturned{0, driver.trial(0).attempt});
  return driver.feed(WorkerEnded{0, driver.trial(0).attempt - 1, kClean});
}

TEST(Experiment, AReplayBeginsWithTheFirstConfigOfItsSchedule) {
  Driver driver(replay(kTwoChanges), 1);
  const Config& config = driver.all<Launch>().at(0)->config;
  EXPECT_EQ(config.get<double>("lr"), 0.1);
  EXPECT_EQ(config.get<std::string>("data"), "here");
  EXPECT_TRUE(config.contains("seed"));
  EXPECT_THAT(driver.trial(0).tag, HasSubstr("0_lr=0.1000,seed="));
}

TEST(Experiment, AReplayChangesTheConfigWithTheResultThatReachesTheIteration) {
  Driver driver(replay(kTwoChanges), 1);
  const std::int64_t seed = driver.trial(0).config.get<std::int64_t>("seed");
  EXPECT_THAT(driver.report(0, at(1), ".reporting_1"), IsEmpty());
  EXPECT_THAT(driver.report(0, at(2), ".reporting_2"), ElementsAre("exploit 0"));
  EXPECT_EQ(driver.all<AnswerReport>().at(0)->verdict, channel::Verdict::stop);
  EXPECT_THAT(driver.all<Say>().at(0)->text, HasSubstr("Replay is now at step 2. Configuration will be changed to"));
  EXPECT_THAT(driver.feed(FunctionReturned{0, 1}), ElementsAre("launch 0"));
  const Launch launch = *driver.all<Launch>().at(0);
  EXPECT_EQ(launch.config.get<double>("lr"), 0.2);
  EXPECT_EQ(launch.config.get<std::int64_t>("seed"), seed) << "it is not the schedule's";
  EXPECT_THAT(launch.checkpoint, HasSubstr("/checkpoint_000001"));
  EXPECT_EQ(launch.step, 2);
  EXPECT_THAT(driver.report(0, at(3)), IsEmpty());
  EXPECT_THAT(driver.report(0, at(4), ".reporting_3"), ElementsAre("exploit 0"));
  driver.feed(FunctionReturned{0, 2});
  EXPECT_EQ(driver.all<Launch>().at(0)->config.get<double>("lr"), 0.4);
  EXPECT_THAT(driver.report(0, at(5), ".reporting_4"), IsEmpty()) << "the schedule is at its end";
}

TEST(Experiment, AReplayRepeatsTheStepsSinceTheNewestCheckpoint) {
  Driver driver(replay({{{"lr", 0.1}}, {{3, {{"lr", 0.2}}}}}), 1);
  driver.report(0, at(1), ".reporting_1");
  driver.report(0, at(2));
  EXPECT_THAT(driver.report(0, at(3)), ElementsAre("exploit 0"));
  EXPECT_THAT(driver.all<Say>().at(0)->text, HasSubstr("It continues from step 1, its newest checkpoint."));
  restart(driver);
  EXPECT_EQ(driver.trial(0).step, 1);
  EXPECT_THAT(driver.feed(ResultReported{0, 2, {2, at(2), ""}}), IsEmpty());
  EXPECT_EQ(driver.all<LogResult>().size(), 1u) << "with the new config it is another result";
  EXPECT_THAT(driver.feed(ResultReported{0, 2, {3, at(3), ""}}), IsEmpty()) << "that change is made";
}

TEST(Experiment, AReplayWithoutACheckpointFailsAndSaysSo) {
  TunerOptions options = replay({{{"lr", 0.1}}, {{3, {{"lr", 0.2}}}}});
  options.run_config.failure_config.max_failures = 5;
  Driver driver(options, 1);
  EXPECT_THAT(driver.report(0, at(1)), IsEmpty());
  EXPECT_THAT(driver.report(0, at(3)), ElementsAre("fail 0"));
  EXPECT_THAT(driver.trial(0).error,
              HasSubstr("changes at training_iteration 3, and the trial has reported no checkpoint"));
}

TEST(Experiment, AReplayMakesOneChangeForEachResult) {
  Driver driver(replay({{{"lr", 0.1}}, {{2, {{"lr", 0.2}}}, {2, {{"lr", 0.3}}}, {1, {{"lr", 0.4}}}}}), 1);
  double expected = 0.2;
  for (std::int64_t iteration = 2; iteration <= 4; ++iteration) {
    EXPECT_THAT(driver.report(0, at(iteration), ".reporting"), ElementsAre("exploit 0"));
    restart(driver);
    EXPECT_DOUBLE_EQ(driver.trial(0).config.get<double>("lr"), expected);
    expected += 0.1;
  }
}

TEST(Experiment, AResultWithoutAnIterationChangesNothingInAReplay) {
  Driver driver(replay({{{"lr", 0.1}}, {{0, {{"lr", 0.2}}}}}), 1);
  EXPECT_THAT(driver.report(0, {{"score", 1}}, ".reporting_1"), IsEmpty());
  EXPECT_THAT(driver.report(0, {{"training_iteration", "9"}}, ".reporting_2"), IsEmpty());
  EXPECT_THAT(driver.report(0, {{"training_iteration", 0.5}}, ".reporting_3"), ElementsAre("exploit 0"));
}

TEST(Experiment, AReplayThatBeginsAnewBeginsWithItsFirstConfig) {
  Driver driver(replay(kTwoChanges), 1);
  driver.report(0, at(2), ".reporting_1");
  restart(driver);
  driver.feed(FunctionThrew{0, 2, "bad luck"});
  driver.feed(WorkerEnded{0, 2, kClean});
  ASSERT_EQ(driver.trial(0).status, TrialStatus::error);
  using Errored = ControllerStarted::Errored;
  EXPECT_THAT(driver.feed(ControllerStarted{.resources = {.cpus = 1}, .errored = Errored::restart}),
              ElementsAre("resume_errored 0", "launch 0"));
  EXPECT_EQ(driver.all<Launch>().at(0)->config.get<double>("lr"), 0.1);
  EXPECT_EQ(driver.all<Launch>().at(0)->checkpoint, "");
  EXPECT_THAT(driver.report(0, at(1)), IsEmpty());
  EXPECT_THAT(driver.report(0, at(2), ".reporting_2"), ElementsAre("exploit 0"));
  EXPECT_EQ(driver.trial(0).config.get<double>("lr"), 0.2);
}

TEST(Experiment, AReplaySaysWhereItIs) {
  Experiment experiment(Trainable("f"), replay(kTwoChanges));
  Actions ignored;
  experiment.handle(ControllerStarted{{.cpus = 1}}, ignored);
  EXPECT_EQ(experiment.scheduler_state(), "PopulationBasedTraining replay: Step 0, perturb 0");
  experiment.handle(ResultReported{0, 1, {1, at(2), ".reporting"}}, ignored);
  EXPECT_EQ(experiment.scheduler_state(), "PopulationBasedTraining replay: Step 2, perturb 1");
}

// ---- snapshots

TEST(Experiment, AStateThatFitsNoExperimentOfTheseOptionsIsRefused) {
  const auto none_has_ended = [](TrialIndex) { return Value(); };
  Experiment four(Trainable("f"), pbt(4));
  Actions ignored;
  four.handle(ControllerStarted{{.cpus = 4}}, ignored);
  const Value state = four.save();
  EXPECT_THROW(Experiment(Trainable("f"), pbt(2)).load(state, none_has_ended), InvalidArgument);
  Dict fewer_members = state.dict();
  for (auto& [key, part] : fewer_members) {
    if (key != "scheduler") continue;
    Config scheduler(part.dict());
    scheduler.set("members", list(scheduler.at("members").items().at(0)));
    part = scheduler.dict();
  }
  EXPECT_THROW(Experiment(Trainable("f"), pbt(4)).load(fewer_members, none_has_ended), InvalidArgument);
  EXPECT_NO_THROW(Experiment(Trainable("f"), pbt(4)).load(state, none_has_ended));
}

PlacementGroup two_bundles(const Config&) { return {.bundles = {{.cpus = 1}, {.cpus = 1}}}; }

// A version before knew less of needs; a restore must come to the decision that it recorded.
TEST(Experiment, NeedsThatWereRecordedStayAsTheyWere) {
  const Trainable trainable = with_resources(Trainable("learner"), fn<two_bundles>);
  const ControllerStarted started{.resources = {.cpus = 4}};
  Actions actions;
  Experiment(trainable, fifo(1)).handle(started, actions);
  const auto made = [](const Actions& all) -> const RecordDecision& {
    const auto is_make = [](const Action& action) {
      const auto* const decision = std::get_if<RecordDecision>(&action);
      return decision != nullptr && decision->kind == DecisionKind::make;
    };
    return std::get<RecordDecision>(*std::ranges::find_if(all, is_make));
  };
  RecordDecision before = made(actions);
  for (auto& [key, value] : before.data) {
    if (key != "needs") continue;
    Dict needs = value.dict();
    EXPECT_GT(std::erase_if(needs, [](const auto& entry) { return entry.first == "bundles"; }), 0U);
    value = needs;
  }
  const RecordedAnswers answers{before};
  Actions again;
  Experiment(trainable, fifo(1)).handle(started, again, &answers);
  EXPECT_EQ(Value(made(again).data), Value(before.data));
}

}  // namespace
}  // namespace cadre::tune
