#include "train/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "base/directory.h"
#include "cadre/detail/enum_names.h"
#include "support/engine_of_a_place.h"
#include "support/temporary_directory.h"
#include "train/assignment.h"
#include "train/recovery.h"

namespace cadre::train {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

const engine::Exit kKilled{engine::Exit::Kind::signal, SIGKILL, {}};
const engine::Exit kClean{engine::Exit::Kind::code, 0, {}};

// A run whose events the test feeds. Each call returns the decisions, as "launch", "retry", ...
class Driver {
 public:
  explicit Driver(TrainerOptions options, double cpus = 8, bool has_parent = false)
      : cpus_(cpus), run_(std::move(options), has_parent) {
    decided = begin();
  }

  std::vector<std::string> feed(const Event& event) {
    actions.clear();
    run_.handle(event, actions);
    std::vector<std::string> made;
    for (const auto* decision : all<RecordDecision>()) made.emplace_back(cadre::detail::enum_name(decision->kind));
    return made;
  }
  // Starts another controller.
  std::vector<std::string> begin(std::vector<checkpoint::CheckpointId> lost = {}) {
    return feed(ControllerStarted{.lost_checkpoints = std::move(lost), .machine = {.cpus = cpus_}});
  }
  std::vector<std::string> began() { return feed(GroupBegan{run_.attempt()}); }
  // All ranks report a step, with a checkpoint of rank 0 if `checkpoint` is true.
  std::vector<std::string> report(std::int64_t step, bool checkpoint = false, bool upload = false) {
    GroupReported event{
        .attempt = run_.attempt(), .step = step, .metrics = {{"loss", 1.0 / static_cast<double>(step)}}};
    if (checkpoint) {
      event.checkpoint.parts = {{.path = ".reporting_" + std::to_string(step)}};
      event.checkpoint.upload = upload;
      event.checkpoint.validation = validation;
      event.checkpoint.until_published = until_published;
    }
    return feed(event);
  }
  std::vector<std::string> threw(Rank rank, const std::string& message) {
    return feed(FunctionThrew{rank, run_.attempt(), message});
  }
  std::vector<std::string> ended(Rank rank, const engine::Exit& exit = kClean) {
    return feed(WorkerEnded{rank, run_.attempt(), exit});
  }
  // The function returns in all ranks, and their processes end.
  std::vector<std::string> return_all() {
    std::vector<std::string> made;
    for (Rank rank = 0; rank < run_.world_size(); ++rank) feed(FunctionReturned{rank, run_.attempt(), rank});
    for (Rank rank = 0; rank < run_.world_size(); ++rank) made = ended(rank);
    return made;
  }
  std::vector<std::string> fire(Timer::Kind kind) { return feed(TimerFired{{kind, run_.attempt()}}); }

  template <class T>
  std::vector<const T*> all() const {
    std::vector<const T*> found;
    for (const Action& action : actions) {
      if (const auto* one = std::get_if<T>(&action)) found.push_back(one);
    }
    return found;
  }
  std::vector<std::string> committed() const {
    std::vector<std::string> names;
    for (const auto* commit : all<CommitCheckpoint>()) names.push_back(commit->directory);
    return names;
  }
  bool started(Timer::Kind kind) const {
    for (const auto* start : all<StartTimer>()) {
      if (start->timer.kind == kind) return true;
    }
    return false;
  }

  std::vector<std::string> decided;                 // at the start
  Actions actions;                                  // of the last event
  std::optional<WantedValidation> validation = {};  // of reported checkpoints
  bool until_published = false;                     // so are they
  const Run& run() const { return run_; }

 private:
  double cpus_;
  Run run_;
};

TrainerOptions workers(std::int64_t count) { return {.scaling_config = {.num_workers = count}}; }

TrainerOptions with_failures(std::int64_t count, std::int64_t most) {
  TrainerOptions options = workers(count);
  options.run_config.failure_config.max_failures = most;
  return options;
}

TrainerOptions elastic(std::int64_t min, std::int64_t max) {
  return {.scaling_config = {.num_workers = WorkerRange{min, max}}};
}

// ---- A group from its start to its end

TEST(TrainRun, AControllerStartsAGroupOfAllWorkers) {
  Driver driver(workers(3));
  EXPECT_THAT(driver.decided, ElementsAre("launch"));
  ASSERT_THAT(driver.all<LaunchGroup>(), SizeIs(1));
  EXPECT_EQ(driver.all<LaunchGroup>()[0]->workers, 3);
  EXPECT_EQ(driver.run().status(), RunStatus::scheduling);
  driver.began();
  EXPECT_EQ(driver.run().status(), RunStatus::running);
}

TEST(TrainRun, IsFinishedWhenEveryRankHasReturnedAndIsGone) {
  Driver driver(workers(2));
  driver.began();
  driver.feed(FunctionReturned{0, 1, "done"});
  driver.feed(FunctionReturned{1, 1, "ignored"});
  EXPECT_THAT(driver.ended(0), IsEmpty());
  EXPECT_FALSE(driver.run().finished());
  EXPECT_THAT(driver.ended(1), ElementsAre("finish"));
  EXPECT_TRUE(driver.run().finished());
  EXPECT_EQ(driver.run().return_value(), Value("done"));
}

TEST(TrainRun, EachChangeOfTheStatusIsSavedWithItsAttempt) {
  Driver driver(workers(1));
  ASSERT_THAT(driver.all<SaveRun>(), SizeIs(1));
  EXPECT_EQ(driver.all<SaveRun>()[0]->status, RunStatus::scheduling);
  EXPECT_EQ(driver.all<SaveRun>()[0]->attempt, 1);
  driver.began();
  ASSERT_THAT(driver.all<SaveRun>(), SizeIs(1));
  EXPECT_EQ(driver.all<SaveRun>()[0]->status, RunStatus::running);
}

TEST(TrainRun, AReportIsShownAndAnswered) {
  Driver driver(workers(2));
  driver.began();
  driver.report(1);
  ASSERT_THAT(driver.all<ShowResult>(), SizeIs(1));
  EXPECT_EQ(driver.all<ShowResult>()[0]->step, 1);
  ASSERT_THAT(driver.all<AnswerGroup>(), SizeIs(1));
  EXPECT_FALSE(driver.all<AnswerGroup>()[0]->stop);
}

// ---- Checkpoints

TEST(TrainRun, RanksWaitForTheCommitOfTheirCheckpoint) {
  Driver driver(workers(1));
  driver.began();
  driver.report(1, true, true);
  EXPECT_THAT(driver.all<UploadCheckpoint>(), SizeIs(1));
  EXPECT_THAT(driver.all<AnswerGroup>(), IsEmpty());
  driver.feed(CheckpointUploaded{0});
  EXPECT_THAT(driver.committed(), ElementsAre("checkpoint_000000"));
  ASSERT_THAT(driver.all<AnswerGroup>(), SizeIs(1));
  EXPECT_EQ(driver.all<AnswerGroup>()[0]->checkpoint, "checkpoint_000000");
}

TEST(TrainRun, CheckpointsAreCommittedInTheOrderOfTheirReports) {
  Driver driver(workers(1));
  driver.began();
  GroupReported report{
      .attempt = 1, .step = 1, .checkpoint = {.parts = {{.path = ".reporting_1"}}, .waits = false, .upload = true}};
  driver.feed(report);
  report.step = 2;
  driver.feed(report);
  driver.feed(CheckpointUploaded{1});
  EXPECT_THAT(driver.committed(), IsEmpty()) << "an earlier one is not complete";
  driver.feed(CheckpointUploaded{0});
  EXPECT_THAT(driver.committed(), ElementsAre("checkpoint_000000", "checkpoint_000001"));
}

TEST(TrainRun, ARunThatHasReturnedWaitsForItsUploads) {
  Driver driver(workers(1));
  driver.began();
  driver.feed(GroupReported{
      .attempt = 1, .step = 1, .checkpoint = {.parts = {{.path = ".reporting_1"}}, .waits = false, .upload = true}});
  EXPECT_THAT(driver.return_all(), IsEmpty());
  EXPECT_EQ(driver.run().status(), RunStatus::shutting_down);
  EXPECT_FALSE(driver.run().finished());
  EXPECT_THAT(driver.feed(CheckpointUploaded{0}), ElementsAre("finish"));
}

TEST(TrainRun, OnlyTheBestCheckpointsAndTheLatestAreKept) {
  TrainerOptions options = workers(1);
  options.run_config.checkpoint_config = {.num_to_keep = 1, .checkpoint_score_attribute = maximize("loss")};
  Driver driver(options);
  driver.began();
  driver.report(1, true);
  driver.report(2, true);
  EXPECT_THAT(driver.all<DeleteCheckpoint>(), IsEmpty()) << "one is the best, one the latest";
  driver.report(3, true);
  ASSERT_THAT(driver.all<DeleteCheckpoint>(), SizeIs(1));
  EXPECT_EQ(driver.all<DeleteCheckpoint>()[0]->directory, "checkpoint_000001");
}

TEST(TrainRun, AFailedUploadIsTriedAgainAndThenFailsTheGroup) {
  Driver driver(with_failures(1, 0));
  driver.began();
  driver.report(1, true, true);
  for (int i = 0; i < 2; ++i) {
    driver.feed(UploadFailed{0, "the storage is away", base::TryAgain::later});
    EXPECT_TRUE(driver.started(Timer::Kind::upload));
    driver.feed(TimerFired{{Timer::Kind::upload, 0}});
    EXPECT_THAT(driver.all<UploadCheckpoint>(), SizeIs(1));
  }
  driver.feed(UploadFailed{0, "the storage is away", base::TryAgain::later});
  EXPECT_EQ(driver.run().status(), RunStatus::failing);
  EXPECT_THAT(driver.all<KillWorker>(), SizeIs(1));
  EXPECT_THAT(driver.ended(0, kKilled), ElementsAre("fail"));
  EXPECT_THAT(driver.run().error(), HasSubstr("the storage is away"));
}

// ---- Failures

TEST(TrainRun, AfterTheFirstFailureTheOtherRanksHaveAMomentToReportTheirs) {
  Driver driver(workers(3));
  driver.began();
  driver.threw(1, "the connection is lost");
  EXPECT_EQ(driver.run().status(), RunStatus::failing);
  EXPECT_TRUE(driver.started(Timer::Kind::settling));
  EXPECT_THAT(driver.all<KillWorker>(), IsEmpty());
  driver.ended(2, kKilled);
  driver.ended(1);
  driver.fire(Timer::Kind::settling);
  ASSERT_THAT(driver.all<KillWorker>(), SizeIs(1)) << "only rank 0 is left";
  EXPECT_EQ(driver.all<KillWorker>()[0]->rank, 0);
  EXPECT_THAT(driver.ended(0, kKilled), ElementsAre("fail"));
  ASSERT_THAT(driver.all<TellOfFailure>(), SizeIs(1));
  const auto& causes = driver.all<TellOfFailure>()[0]->causes;
  EXPECT_THAT(causes, SizeIs(2));
  EXPECT_THAT(causes, Contains(Pair(1, "the connection is lost")));
  // The rank that died without a message is the likely cause of the other failure.
  EXPECT_TRUE(driver.run().error().starts_with("rank 2: ")) << driver.run().error();
}

TEST(TrainRun, AFailedGroupStartsAgainFromTheLatestCheckpoint) {
  Driver driver(with_failures(1, 1));
  driver.began();
  driver.report(1, true);
  driver.report(2);
  driver.threw(0, "bad luck");
  EXPECT_THAT(driver.ended(0), ElementsAre("retry", "launch"));
  ASSERT_THAT(driver.all<LaunchGroup>(), SizeIs(1));
  EXPECT_EQ(driver.all<LaunchGroup>()[0]->checkpoint, "checkpoint_000000");
  EXPECT_EQ(driver.all<LaunchGroup>()[0]->step, 1);
  driver.began();
  driver.report(2);
  EXPECT_THAT(driver.all<ShowResult>(), IsEmpty()) << "step 2 was shown in the first attempt";
  driver.report(3);
  EXPECT_THAT(driver.all<ShowResult>(), SizeIs(1));
  driver.threw(0, "bad luck");
  EXPECT_THAT(driver.ended(0), ElementsAre("fail"));
  EXPECT_EQ(driver.run().status(), RunStatus::failed);
  EXPECT_TRUE(driver.run().finished());
}

TEST(TrainRun, RepeatedFailuresWithoutAResultAreTriedAgainAfterADelay) {
  Driver driver(with_failures(1, -1));
  for (int i = 0; i < 2; ++i) {
    driver.began();
    driver.threw(0, "bad luck");
    EXPECT_THAT(driver.ended(0), ElementsAre("retry", "launch"));
  }
  driver.began();
  driver.threw(0, "bad luck");
  EXPECT_THAT(driver.ended(0), ElementsAre("retry"));
  EXPECT_EQ(driver.run().status(), RunStatus::waiting);
  EXPECT_THAT(driver.fire(Timer::Kind::retry), ElementsAre("launch"));
}

TEST(TrainRun, FailuresOfTheFunctionOfStartsAndByPreemptionAreCountedApart) {
  TrainerOptions options = with_failures(1, 0);
  options.run_config.failure_config.max_start_failures = 1;
  options.run_config.failure_config.max_preemption_failures = 1;
  Driver driver(options);
  driver.ended(0, {engine::Exit::Kind::not_started, 0, {}});
  EXPECT_EQ(driver.run().status(), RunStatus::waiting);
  driver.fire(Timer::Kind::retry);
  driver.began();
  EXPECT_THAT(driver.ended(0, {engine::Exit::Kind::signal, SIGTERM, {}}), ElementsAre("retry", "launch"));
  driver.began();
  driver.threw(0, "bad luck");
  EXPECT_THAT(driver.ended(0), ElementsAre("fail"));
}

TEST(TrainRun, ReportsThatDoNotMatchEndTheGroupAtOnce) {
  Driver driver(workers(2));
  driver.began();
  driver.feed(GroupBroke{1, "rank 1 has reported step 2, and rank 0 step 1"});
  EXPECT_THAT(driver.all<KillWorker>(), SizeIs(2));
  driver.ended(0, kKilled);
  EXPECT_THAT(driver.ended(1, kKilled), ElementsAre("fail"));
  EXPECT_EQ(driver.run().error(), "rank 1 has reported step 2, and rank 0 step 1");
}

TEST(TrainRun, MessagesOfAnEarlierAttemptCountForNothing) {
  Driver driver(with_failures(1, 1));
  driver.began();
  driver.threw(0, "bad luck");
  driver.ended(0);
  ASSERT_EQ(driver.run().attempt(), 2);
  const train::Run before = driver.run();
  EXPECT_THAT(driver.feed(GroupReported{.attempt = 1, .step = 5}), IsEmpty());
  driver.feed(GroupBegan{1});
  driver.feed(FunctionThrew{0, 1, "late"});
  driver.feed(WorkerEnded{0, 1, kKilled});
  driver.feed(GroupBroke{1, "late"});
  EXPECT_TRUE(driver.run() == before);
  EXPECT_THAT(driver.actions, IsEmpty());
}

// ---- Interruptions

TEST(TrainRun, AnInterruptedGroupStopsWithTheAnswerToItsNextReport) {
  Driver driver(workers(1));
  driver.began();
  driver.feed(RunInterrupted{});
  EXPECT_TRUE(driver.started(Timer::Kind::stopping));
  EXPECT_THAT(driver.report(1, true), ElementsAre("stop"));
  ASSERT_THAT(driver.all<AnswerGroup>(), SizeIs(1));
  EXPECT_TRUE(driver.all<AnswerGroup>()[0]->stop);
  EXPECT_EQ(driver.run().status(), RunStatus::stopping);
  EXPECT_THAT(driver.return_all(), IsEmpty());
  EXPECT_EQ(driver.run().status(), RunStatus::aborted);
  EXPECT_TRUE(driver.run().finished());
  EXPECT_THAT(driver.begin(), ElementsAre("launch"));
  EXPECT_EQ(driver.all<LaunchGroup>()[0]->checkpoint, "checkpoint_000000");
}

// They waited until they were killed.
TEST(TrainRun, RanksThatWaitForAFailedUploadAreToldToStopWhenTheRunIsInterrupted) {
  const UploadFailed failed{0, "the storage is away", base::TryAgain::later};
  for (const bool has_failed_before : {true, false}) {
    Driver driver(workers(1));
    driver.began();
    driver.report(1, true, true);
    if (has_failed_before) {
      driver.feed(failed);
      EXPECT_THAT(driver.feed(RunInterrupted{}), ElementsAre("stop"));
    } else {
      EXPECT_THAT(driver.feed(RunInterrupted{}), IsEmpty()) << "it may still be uploaded";
      EXPECT_THAT(driver.feed(failed), ElementsAre("stop"));
    }
    ASSERT_THAT(driver.all<AnswerGroup>(), SizeIs(1));
    EXPECT_TRUE(driver.all<AnswerGroup>()[0]->stop);
    EXPECT_EQ(driver.run().status(), RunStatus::stopping);
    EXPECT_THAT(driver.return_all(), IsEmpty());
    EXPECT_EQ(driver.run().status(), RunStatus::aborted);
    EXPECT_TRUE(driver.run().finished());
    EXPECT_THAT(driver.begin(), IsEmpty()) << "it is uploaded first";
    EXPECT_THAT(driver.feed(CheckpointUploaded{0}), ElementsAre("launch"));
    EXPECT_EQ(driver.all<LaunchGroup>().at(0)->step, 1);
  }
}

TEST(TrainRun, AReportAfterAnInterruptDoesNotWaitForAnEarlierUploadThatHasFailed) {
  Driver driver(workers(1));
  driver.began();
  driver.feed(GroupReported{
      .attempt = 1, .step = 1, .checkpoint = {.parts = {{.path = ".reporting_1"}}, .waits = false, .upload = true}});
  driver.feed(UploadFailed{0, "the storage is away", base::TryAgain::later});
  EXPECT_THAT(driver.feed(RunInterrupted{}), IsEmpty());
  EXPECT_THAT(driver.report(2, true), ElementsAre("stop"));
  ASSERT_THAT(driver.all<AnswerGroup>(), SizeIs(1));
  EXPECT_TRUE(driver.all<AnswerGroup>()[0]->stop);
}

TEST(TrainRun, AGroupThatDoesNotStopInTimeIsKilledAndThatIsNoFailure) {
  Driver driver(with_failures(1, 0));
  driver.began();
  driver.feed(RunInterrupted{});
  driver.fire(Timer::Kind::stopping);
  EXPECT_THAT(driver.all<KillWorker>(), SizeIs(1));
  EXPECT_THAT(driver.ended(0, kKilled), IsEmpty());
  EXPECT_EQ(driver.run().status(), RunStatus::aborted);
}

TEST(TrainRun, AFailureDuringAnInterruptionIsNotCounted) {
  Driver driver(with_failures(1, 0));
  driver.began();
  driver.feed(RunInterrupted{});
  driver.threw(0, "the interrupt reached it too");
  EXPECT_THAT(driver.ended(0), IsEmpty());
  EXPECT_EQ(driver.run().status(), RunStatus::aborted);
  EXPECT_THAT(driver.begin(), ElementsAre("launch"));
}

TEST(TrainRun, AnInterruptionBetweenTwoAttemptsLeavesTheNextOneToTheNextController) {
  Driver driver(with_failures(1, -1));
  for (int i = 0; i < 3; ++i) {
    driver.began();
    driver.threw(0, "bad luck");
    driver.ended(0);
  }
  ASSERT_EQ(driver.run().status(), RunStatus::waiting);
  driver.feed(RunInterrupted{});
  EXPECT_TRUE(driver.run().finished());
  EXPECT_FALSE(driver.run().awaits({Timer::Kind::retry, driver.run().attempt()}));
  EXPECT_THAT(driver.begin(), ElementsAre("launch"));
}

TEST(TrainRun, ALostCheckpointIsReplacedByTheOneBefore) {
  TrainerOptions options = workers(1);
  Driver driver(options);
  driver.began();
  driver.report(1, true);
  driver.report(2, true);
  driver.feed(RunInterrupted{});
  driver.report(3);
  driver.return_all();
  EXPECT_THAT(driver.begin({2}), ElementsAre("lose", "launch"));
  EXPECT_EQ(driver.all<LaunchGroup>()[0]->checkpoint, "checkpoint_000000");
  EXPECT_EQ(driver.all<LaunchGroup>()[0]->step, 1);
}

TEST(TrainRun, AFinishedRunStaysFinishedForAnotherController) {
  Driver driver(workers(1));
  driver.began();
  driver.return_all();
  EXPECT_THAT(driver.begin(), IsEmpty());
  EXPECT_TRUE(driver.run().finished());
}

// ---- Groups of variable size

TEST(TrainRun, AGroupOfVariableSizeBeginsWithTheWorkersThatFit) {
  Driver driver(elastic(2, 4));
  driver.began();
  EXPECT_EQ(driver.run().world_size(), 4);
  driver.feed(ResourcesSeen{3, {.cpus = 3}});
  EXPECT_THAT(driver.report(1), IsEmpty()) << "nothing is saved yet";
  EXPECT_THAT(driver.report(2, true), ElementsAre("resize"));
  EXPECT_TRUE(driver.all<AnswerGroup>().at(0)->stop);
  EXPECT_EQ(driver.run().status(), RunStatus::resizing);
  EXPECT_THAT(driver.return_all(), ElementsAre("launch"));
  EXPECT_EQ(driver.all<LaunchGroup>().at(0)->workers, 3);
  EXPECT_EQ(driver.all<LaunchGroup>().at(0)->step, 2);
}

// Lets the group of a new run fail when there is too little for another one.
void starve(Driver& driver) {
  driver.feed(ResourcesSeen{1, {.cpus = 1}});
  driver.ended(0, {engine::Exit::Kind::not_started, 0, {}});
  for (Rank rank = 1; rank < 4; ++rank) driver.ended(rank, kKilled);
  driver.fire(Timer::Kind::retry);
  ASSERT_EQ(driver.run().status(), RunStatus::starved);
}

TEST(TrainRun, AGroupOfVariableSizeWaitsForTheLeastNumberOfWorkers) {
  Driver driver(elastic(2, 4));
  starve(driver);
  EXPECT_THAT(driver.feed(ResourcesSeen{2, {.cpus = 2}}), ElementsAre("launch"));
  EXPECT_EQ(driver.run().world_size(), 2);
}

TEST(TrainRun, AnotherControllerStartsOneGroupOfARunThatWaitedForResources) {
  Driver driver(elastic(2, 4));
  starve(driver);
  EXPECT_THAT(driver.feed(ResourcesSeen{3, {.cpus = 3}, /*at_start=*/true}), IsEmpty());
  EXPECT_THAT(driver.begin(), ElementsAre("launch"));
  EXPECT_EQ(driver.run().attempt(), 2);
  EXPECT_EQ(driver.run().world_size(), 3);
}

// ---- Groups on several nodes

const engine::Exit kNodeLost{engine::Exit::Kind::node_lost, 0, {}};

ControllerStarted on_nodes(const std::vector<double>& cpus) {
  ControllerStarted started{.nodes = {.may_change = true}};
  for (const double amount : cpus) {
    const auto id = static_cast<engine::NodeId>(started.nodes.nodes.size());
    started.nodes.nodes.push_back({.id = id, .name = "node", .resources = {.cpus = amount}});
  }
  return started;
}

std::vector<engine::NodeId> nodes_of(const LaunchGroup& group) {
  std::vector<engine::NodeId> nodes;
  for (const resources::Place& place : group.places) nodes.push_back(place.node);
  return nodes;
}

// A driver whose run begins on nodes with so many CPUs.
class NodesDriver : public Driver {
 public:
  NodesDriver(const TrainerOptions& options, const std::vector<double>& cpus) : Driver(options) {
    feed(RunInterrupted{});
    for (Rank rank = 0; rank < run().world_size(); ++rank) ended(rank);
    decided = feed(on_nodes(cpus));
  }
};

TEST(TrainRun, RanksOfANodeAreConsecutive) {
  NodesDriver driver(workers(5), {2, 3});
  ASSERT_THAT(driver.decided, ElementsAre("launch"));
  const LaunchGroup group = *driver.all<LaunchGroup>().at(0);
  EXPECT_THAT(nodes_of(group), ElementsAre(0, 0, 1, 1, 1));
  const std::vector<engine::Node> nodes{{.id = 0, .address = "10.0.0.1"}, {.id = 1, .address = "10.0.0.2"}};
  const worker::GroupPlace place = place_of(group, 3, nodes);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_world_size, 3);
  EXPECT_EQ(place.node_rank, 1);
  EXPECT_EQ(place.num_nodes, 2);
  EXPECT_EQ(place.address, "10.0.0.2");
  EXPECT_EQ(place_of(group, 1, nodes).node_rank, 0);
}

TEST(TrainRun, AGroupWaitsUntilNodesHaveRoomForAllOfIt) {
  NodesDriver driver(workers(3), {1, 1});
  EXPECT_THAT(driver.decided, IsEmpty());
  EXPECT_EQ(driver.run().status(), RunStatus::starved);
  EXPECT_THAT(driver.feed(NodeJoined{{.id = 2, .name = "node", .resources = {.cpus = 1}}}), ElementsAre("launch"));
}

TEST(TrainRun, StrictSpreadPutsEachRankOnANodeOfItsOwn) {
  TrainerOptions options = elastic(1, 4);
  options.scaling_config.placement_strategy = PlacementStrategy::strict_spread;
  NodesDriver driver(options, {4, 4});
  EXPECT_THAT(nodes_of(*driver.all<LaunchGroup>().at(0)), ElementsAre(0, 1));
}

TEST(TrainRun, TheLossOfANodeIsAPreemption) {
  NodesDriver driver(workers(2), {1, 1, 2});
  ASSERT_THAT(nodes_of(*driver.all<LaunchGroup>().at(0)), ElementsAre(2, 2));
  driver.began();
  driver.ended(0, kNodeLost);
  EXPECT_THAT(driver.ended(1, kNodeLost), ElementsAre("retry", "launch"));  // max_failures is 0
  EXPECT_THAT(nodes_of(*driver.all<LaunchGroup>().at(0)), ElementsAre(0, 1));
  EXPECT_THAT(driver.feed(NodeLeft{2}), IsEmpty());
}

TEST(TrainRun, AGroupOfFixedSizeLeavesANodeThatDrainsWithASavedReport) {
  NodesDriver driver(workers(2), {2, 1, 1});
  ASSERT_THAT(nodes_of(*driver.all<LaunchGroup>().at(0)), ElementsAre(0, 0));
  driver.began();
  EXPECT_THAT(driver.feed(NodeDraining{.node = 0}), IsEmpty());
  EXPECT_THAT(driver.report(1), IsEmpty()) << "nothing is saved yet";
  EXPECT_THAT(driver.report(2, true), ElementsAre("resize"));
  EXPECT_TRUE(driver.all<AnswerGroup>().at(0)->stop);
  EXPECT_THAT(driver.return_all(), ElementsAre("launch"));
  EXPECT_THAT(nodes_of(*driver.all<LaunchGroup>().at(0)), ElementsAre(1, 2));
  EXPECT_EQ(driver.all<LaunchGroup>().at(0)->step, 2);
}

TEST(TrainRun, AGroupRunsOnOnANodeThatDrainsWhileThereIsNoRoomElsewhere) {
  NodesDriver driver(workers(2), {2, 1});
  driver.began();
  driver.feed(NodeDraining{.node = 0});
  EXPECT_THAT(driver.report(1, true), IsEmpty());
  EXPECT_FALSE(driver.all<AnswerGroup>().at(0)->stop);
}

TEST(TrainRun, AGroupOfVariableSizeShrinksWhenANodeDrainsAndGrowsWhenOneJoins) {
  NodesDriver driver(elastic(1, 4), {2, 2});
  driver.began();
  ASSERT_EQ(driver.run().world_size(), 4);
  driver.feed(NodeDraining{.node = 1});
  EXPECT_THAT(driver.report(1, true), ElementsAre("resize"));
  EXPECT_THAT(driver.return_all(), ElementsAre("launch"));
  EXPECT_THAT(nodes_of(*driver.all<LaunchGroup>().at(0)), ElementsAre(0, 0));
  driver.began();
  driver.feed(NodeJoined{{.id = 2, .name = "node", .resources = {.cpus = 1}}});
  EXPECT_THAT(driver.report(2, true), ElementsAre("resize"));
  driver.return_all();
  EXPECT_EQ(driver.run().world_size(), 3);
}

TEST(TrainRun, AValidatorThatIsLostWithItsNodeBeginsAgainWithoutAFailure) {
  TrainerOptions options = workers(1);
  options.validation.function.name = "validate";
  NodesDriver driver(options, {1, 2});
  driver.validation = WantedValidation{.function = "validate"};
  driver.began();
  driver.report(1, true);
  ASSERT_THAT(driver.all<StartValidator>(), SizeIs(1));
  const StartValidator first = *driver.all<StartValidator>()[0];
  EXPECT_EQ(first.place.node, 1u);
  driver.feed(ValidatorEnded{first.id, first.attempt, kNodeLost});
  EXPECT_THAT(driver.all<StartValidator>(), IsEmpty()) << "its node is gone";
  driver.feed(NodeJoined{{.id = 2, .name = "node", .resources = {.cpus = 1}}});
  ASSERT_THAT(driver.all<StartValidator>(), SizeIs(1));
  EXPECT_EQ(driver.all<StartValidator>()[0]->place.node, 2u);
  EXPECT_EQ(driver.run().validations().find(first.id)->failures, 0);
}

// ---- What waits for nodes

using Demands = std::vector<engine::Demand>;

TEST(TrainRun, AGroupWithoutRoomIsDemandForWhatIsMissing) {
  NodesDriver driver(workers(3), {1, 1});
  EXPECT_EQ(driver.run().demand(), (Demands{{{.cpus = 1}, 1}}));
  driver.feed(NodeJoined{{.id = 2, .name = "node", .resources = {.cpus = 1}}});
  EXPECT_THAT(driver.run().demand(), IsEmpty());
  driver.began();
  driver.feed(NodeDraining{.node = 2});
  EXPECT_EQ(driver.run().demand(), (Demands{{{.cpus = 1}, 1}}));
}

TEST(TrainRun, AGroupOfVariableSizeWouldLikeToGrow) {
  NodesDriver driver(elastic(1, 4), {2});
  EXPECT_EQ(driver.run().demand(), (Demands{{{.cpus = 1}, 2}}));
  driver.began();
  EXPECT_EQ(driver.run().demand(), (Demands{{{.cpus = 1}, 2}}));
  driver.return_all();
  EXPECT_THAT(driver.run().demand(), IsEmpty()) << "it has trained";
}

TEST(TrainRun, AGroupThatMustBeOnOneNodeIsDemandAsAWhole) {
  TrainerOptions options = workers(3);
  options.scaling_config.placement_strategy = PlacementStrategy::strict_pack;
  const NodesDriver driver(options, {2, 2});
  EXPECT_EQ(driver.run().demand(), (Demands{{{.cpus = 3}, 1}}));
}

TEST(TrainRun, ValidationsWithoutRoomAreDemandUntilTheyRun) {
  TrainerOptions options = workers(1);
  options.validation.function.name = "validate";
  options.validation.max_in_flight = 2;
  NodesDriver driver(options, {1});
  driver.validation = WantedValidation{.function = "validate"};
  driver.began();
  for (std::int64_t step = 1; step <= 3; ++step) driver.report(step, true);
  EXPECT_EQ(driver.run().demand(), (Demands{{{.cpus = 1}, 2}}));
  driver.feed(NodeJoined{{.id = 2, .name = "node", .resources = {.cpus = 1}}});
  EXPECT_EQ(driver.run().demand(), (Demands{{{.cpus = 1}, 1}}));
}

// ---- Runs that belong to a trial

TEST(TrainRun, AResultIsForwardedToTheParentBeforeItsRanksAreAnswered) {
  Driver driver(workers(1), 8, /*has_parent=*/true);
  driver.began();
  driver.report(1, true);
  ASSERT_THAT(driver.all<ForwardResult>(), SizeIs(1));
  EXPECT_EQ(driver.all<ForwardResult>()[0]->checkpoint, "checkpoint_000000");
  EXPECT_THAT(driver.all<AnswerGroup>(), IsEmpty());
  driver.feed(ResultForwarded{1, true});
  EXPECT_FALSE(driver.all<AnswerGroup>().at(0)->stop);
}

TEST(TrainRun, AParentCanEndTheRunWithItsReply) {
  Driver driver(workers(1), 8, /*has_parent=*/true);
  driver.began();
  driver.report(1);
  EXPECT_THAT(driver.feed(ResultForwarded{1, false}), ElementsAre("stop"));
  EXPECT_TRUE(driver.all<AnswerGroup>().at(0)->stop);
  EXPECT_TRUE(driver.run().ended_by_parent());
  driver.return_all();
  EXPECT_TRUE(driver.run().finished());
}

// ---- Reports that wait until they are published

TEST(TrainRun, AReportThatAsksForItIsAnsweredWhenItIsPublished) {
  Driver driver(workers(1));
  driver.until_published = true;
  driver.began();
  driver.report(1, true);
  EXPECT_THAT(driver.committed(), ElementsAre("checkpoint_000000"));
  ASSERT_THAT(driver.all<AwaitPublication>(), SizeIs(1));
  EXPECT_THAT(driver.all<AnswerGroup>(), IsEmpty());
  driver.feed(ReportPublished{1, 0});
  EXPECT_THAT(driver.all<AnswerGroup>(), IsEmpty()) << "it was another one";
  driver.feed(ReportPublished{1, 1});
  EXPECT_FALSE(driver.all<AnswerGroup>().at(0)->stop);
  driver.until_published = false;
  driver.report(2, true);
  EXPECT_THAT(driver.all<AnswerGroup>(), SizeIs(1));
}

TEST(TrainRun, AnInterruptDoesNotWaitUntilAReportIsPublished) {
  Driver driver(workers(1));
  driver.until_published = true;
  driver.began();
  driver.report(1, true);
  EXPECT_THAT(driver.feed(RunInterrupted{}), ElementsAre("stop"));
  EXPECT_TRUE(driver.all<AnswerGroup>().at(0)->stop);
  driver.feed(ReportPublished{1, 1});
  EXPECT_THAT(driver.all<AnswerGroup>(), IsEmpty());
}

TEST(TrainRun, AGroupThatFailsMeanwhileDoesNotWaitEither) {
  Driver driver(with_failures(2, 1));
  driver.until_published = true;
  driver.began();
  driver.report(1, true);
  driver.ended(0, kKilled);
  EXPECT_TRUE(driver.all<AnswerGroup>().at(0)->stop);
  driver.feed(ReportPublished{1, 1});
  EXPECT_THAT(driver.all<AnswerGroup>(), IsEmpty());
}

// ---- Validations

TrainerOptions with_validation() {
  TrainerOptions options = workers(2);
  options.validation.function.name = "validate";
  return options;
}

TEST(TrainRun, AValidationRunsBesideTheGroupAndCompletesTheMetrics) {
  Driver driver(with_validation(), 3);
  driver.validation.emplace();
  driver.began();
  EXPECT_THAT(driver.report(1, true), ElementsAre("validate"));
  ASSERT_THAT(driver.all<StartValidator>(), SizeIs(1));
  EXPECT_EQ(driver.all<StartValidator>()[0]->wanted.function, "validate");
  EXPECT_THAT(driver.feed(ValidatorReturned{1, 1, {{"accuracy", 0.9}}}), ElementsAre("finish_validation"));
  ASSERT_THAT(driver.all<ShowValidation>(), SizeIs(1));
  EXPECT_EQ(driver.all<ShowValidation>()[0]->metrics.get<double>("accuracy"), 0.9);
  EXPECT_EQ(driver.all<ShowValidation>()[0]->metrics.get<double>("loss"), 1);
}

TEST(TrainRun, AValidationWithoutRoomWaitsUntilTheRunHasTrained) {
  Driver driver(with_validation(), 2);
  driver.validation.emplace();
  driver.began();
  EXPECT_THAT(driver.report(1, true), IsEmpty());
  EXPECT_THAT(driver.run().lack_of_validations(), HasSubstr("they need 1 CPUs"));
  EXPECT_THAT(driver.return_all(), ElementsAre("validate"));
  EXPECT_EQ(driver.run().status(), RunStatus::validating);
  EXPECT_THAT(driver.feed(ValidatorReturned{1, 1, {}}), ElementsAre("finish_validation", "finish"));
  EXPECT_FALSE(driver.run().finished()) << "the validator's process has not ended";
  driver.feed(ValidatorEnded{1, 1, kClean});
  EXPECT_TRUE(driver.run().finished());
}

TEST(TrainRun, AValidationHasTheResourcesThatItsReportSays) {
  Driver driver(with_validation(), 3);
  driver.began();
  driver.validation = WantedValidation{.resources = Resources{.cpus = 2}};
  EXPECT_THAT(driver.report(1, true), IsEmpty()) << "one CPU is free";
  EXPECT_THAT(driver.run().lack_of_validations(), HasSubstr("they need 2 CPUs"));
  EXPECT_EQ(driver.run().demand().back(), (engine::Demand{{.cpus = 2}, 1}));
  driver.return_all();
  ASSERT_THAT(driver.all<StartValidator>(), SizeIs(1));
  EXPECT_EQ(driver.all<StartValidator>()[0]->wanted.resources->cpus, 2);
}

TEST(TrainRun, AValidationThatFailsIsTriedAgainAndNeverFailsTheRun) {
  TrainerOptions options = with_validation();
  options.validation.max_retries = 1;
  Driver driver(options, 3);
  driver.validation.emplace();
  driver.began();
  driver.report(1, true);
  EXPECT_THAT(driver.feed(ValidatorThrew{1, 1, "bad luck"}), IsEmpty());
  EXPECT_THAT(driver.feed(ValidatorEnded{1, 1, kClean}), ElementsAre("validate"));
  EXPECT_THAT(driver.feed(ValidatorEnded{1, 2, kKilled}), ElementsAre("finish_validation"));
  EXPECT_EQ(driver.all<ShowValidation>().at(0)->status, ReportedCheckpointStatus::validation_failed);
  EXPECT_THAT(driver.return_all(), ElementsAre("finish"));
}

TEST(TrainRun, AValidatorOverItsTimeIsKilled) {
  TrainerOptions options = with_validation();
  options.validation.max_retries = 0;
  Driver driver(options, 3);
  driver.validation = WantedValidation{.timeout_s = 5};
  driver.began();
  driver.report(1, true);
  EXPECT_TRUE(driver.started(Timer::Kind::validation));
  driver.feed(TimerFired{{Timer::Kind::validation, 1}});
  EXPECT_THAT(driver.all<KillValidator>(), SizeIs(1));
  driver.feed(ValidatorEnded{1, 1, kKilled});
  EXPECT_EQ(driver.all<ShowValidation>().at(0)->status, ReportedCheckpointStatus::validation_timed_out);
}

TEST(TrainRun, AnInterruptedValidationBeginsAnewWithTheNextController) {
  Driver driver(with_validation(), 3);
  driver.validation.emplace();
  driver.began();
  driver.report(1, true);
  driver.return_all();
  driver.feed(RunInterrupted{});
  EXPECT_THAT(driver.all<KillValidator>(), SizeIs(1));
  driver.feed(ValidatorEnded{1, 1, kKilled});
  EXPECT_TRUE(driver.run().finished());
  EXPECT_EQ(driver.run().status(), RunStatus::validating);
  EXPECT_THAT(driver.begin(), ElementsAre("validate"));
  EXPECT_THAT(driver.feed(ValidatorReturned{1, 2, {}}), ElementsAre("finish_validation", "finish"));
}

// ---- Directories

TEST(TrainRun, ACopyThatARanksWorkerMakesIsCommittedWhenAllAreComplete) {
  Driver driver(workers(2));
  driver.began();
  using Kind = CheckpointPart::Kind;
  const auto report = [&](std::int64_t step, const std::string& name) {
    GroupReported event{.attempt = 1, .step = step};
    event.checkpoint = {.parts = {{.kind = Kind::copying, .rank = 0, .path = name + "_0"},
                                  {.kind = Kind::copying, .rank = 1, .path = name + "_1"}},
                        .waits = false};
    driver.feed(event);
  };
  driver.feed(PromiseEnded{0, 1, {.step = 1}});  // it comes before the last rank reports
  report(1, ".reporting_a");
  EXPECT_THAT(driver.all<AnswerGroup>(), SizeIs(1));
  EXPECT_THAT(driver.committed(), IsEmpty());
  EXPECT_EQ(driver.run().checkpoints().name_of(0), "checkpoint_000000") << "no function chooses it";
  driver.feed(PromiseEnded{1, 1, {.step = 1}});
  ASSERT_THAT(driver.committed(), ElementsAre("checkpoint_000000"));
  EXPECT_THAT(driver.all<CommitCheckpoint>()[0]->from, ElementsAre(".reporting_a_0", ".reporting_a_1"));

  report(2, ".reporting_b");
  driver.feed(PromiseEnded{0, 1, {.step = 2}});
  driver.feed(PromiseEnded{1, 1, {.step = 2, .error = "the disk is gone"}});
  EXPECT_THAT(driver.committed(), IsEmpty());
  std::vector<std::string> removed;
  for (const auto* left : driver.all<RemoveDirectory>()) removed.push_back(left->path);
  EXPECT_THAT(removed, ElementsAre(".reporting_b_0", ".reporting_b_1"));
}

TEST(TrainRun, AFunctionThatNamesNoDirectoryHasFailed) {
  Driver driver(workers(1));
  driver.began();
  GroupReported event{.attempt = 1, .step = 1};
  event.checkpoint = {.parts = {{.kind = CheckpointPart::Kind::promised}}, .waits = false};
  driver.feed(event);
  driver.feed(PromiseEnded{0, 1, {.step = 1}});
  EXPECT_THAT(driver.committed(), IsEmpty());
  EXPECT_THAT(driver.run().checkpoints().pending(), IsEmpty());
}

TEST(TrainRun, ACheckpointThatIsLostWithItsWorkerOrItsFilesIsSaid) {
  Driver driver(with_failures(1, 1));
  const auto said = [&] {
    std::string text;
    for (const Say* one : driver.all<Say>()) text += one->text + "\n";
    return text;
  };
  driver.began();
  GroupReported event{.attempt = 1, .step = 1};
  event.checkpoint = {.parts = {{.kind = CheckpointPart::Kind::promised}}, .waits = false};
  driver.feed(event);
  driver.ended(0, kKilled);
  EXPECT_THAT(said(), HasSubstr("Warning: the checkpoint checkpoint_000000 of report 1 could not be uploaded: "
                                "its worker is gone\n"));
  driver.began();
  driver.report(1, true, true);
  driver.feed(ControllerStarted{.lost_uploads = {1}, .machine = {.cpus = 8}});
  EXPECT_THAT(said(), HasSubstr("Warning: the checkpoint checkpoint_000001 of report 1 could not be uploaded: "
                                "it is not there any more\n"));
  EXPECT_THAT(driver.run().checkpoints().pending(), IsEmpty());
}

TEST(TrainRun, ACopyThatIsBeingMadeIsNoLeftover) {
  TrainerOptions options;
  options.run_config.failure_config.max_failures = 1;
  Driver driver(options);
  driver.began();
  GroupReported report{.attempt = 1, .step = 1};
  report.checkpoint = {
      .parts = {{.kind = CheckpointPart::Kind::borrowed, .path = "/tmp"}}, .waits = false, .upload = true};
  driver.feed(report);
  const test_support::TemporaryDirectory directory;
  for (const char* name : {".reporting_copy_0_0", ".reporting_copy_1_0", ".reporting_1_2", "checkpoint_000000"})
    base::make_directory(directory / name);
  driver.ended(0, kKilled);  // the group begins again while its checkpoint is copied
  const test_support::EngineWhoseWorkersWorkIn engine{{}};
  EXPECT_THAT(leftovers(driver.run(), {directory.path(), {}, engine}),
              UnorderedElementsAre(".reporting_copy_1_0", ".reporting_1_2"));
  driver.feed(CheckpointUploaded{0});
  EXPECT_THAT(leftovers(driver.run(), {directory.path(), {}, engine}),
              UnorderedElementsAre(".reporting_copy_0_0", ".reporting_copy_1_0", ".reporting_1_2"));
}

}  // namespace
}  // namespace cadre::train
