#include "train/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "base/enum_names.h"

namespace cadre::train {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

const engine::Exit kKilled{engine::Exit::Kind::signal, SIGKILL, {}};
const engine::Exit kClean{engine::Exit::Kind::code, 0, {}};

// A run whose events the test feeds. Each call returns the decisions, as "launch", "retry", ...
class Hand {
 public:
  explicit Hand(TrainerOptions options, double cpus = 8, bool has_parent = false)
      : cpus_(cpus), run_(std::move(options), has_parent) {
    decided = begin();
  }

  std::vector<std::string> feed(const Event& event) {
    actions.clear();
    run_.handle(event, actions);
    std::vector<std::string> made;
    for (const auto* decision : all<RecordDecision>()) made.emplace_back(base::enum_name(decision->kind));
    return made;
  }
  // Starts another controller.
  std::vector<std::string> begin(std::vector<run::CheckpointId> lost = {}) {
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
  Hand hand(workers(3));
  EXPECT_THAT(hand.decided, ElementsAre("launch"));
  ASSERT_THAT(hand.all<LaunchGroup>(), SizeIs(1));
  EXPECT_EQ(hand.all<LaunchGroup>()[0]->workers, 3);
  EXPECT_EQ(hand.run().status(), RunStatus::scheduling);
  hand.began();
  EXPECT_EQ(hand.run().status(), RunStatus::running);
}

TEST(TrainRun, IsFinishedWhenEveryRankHasReturnedAndIsGone) {
  Hand hand(workers(2));
  hand.began();
  hand.feed(FunctionReturned{0, 1, "done"});
  hand.feed(FunctionReturned{1, 1, "ignored"});
  EXPECT_THAT(hand.ended(0), IsEmpty());
  EXPECT_FALSE(hand.run().finished());
  EXPECT_THAT(hand.ended(1), ElementsAre("finish"));
  EXPECT_TRUE(hand.run().finished());
  EXPECT_EQ(hand.run().return_value(), Value("done"));
}

TEST(TrainRun, EachChangeOfTheStatusIsSavedWithItsAttempt) {
  Hand hand(workers(1));
  ASSERT_THAT(hand.all<SaveRun>(), SizeIs(1));
  EXPECT_EQ(hand.all<SaveRun>()[0]->status, RunStatus::scheduling);
  EXPECT_EQ(hand.all<SaveRun>()[0]->attempt, 1);
  hand.began();
  ASSERT_THAT(hand.all<SaveRun>(), SizeIs(1));
  EXPECT_EQ(hand.all<SaveRun>()[0]->status, RunStatus::running);
}

TEST(TrainRun, AReportIsShownAndAnswered) {
  Hand hand(workers(2));
  hand.began();
  hand.report(1);
  ASSERT_THAT(hand.all<ShowResult>(), SizeIs(1));
  EXPECT_EQ(hand.all<ShowResult>()[0]->step, 1);
  ASSERT_THAT(hand.all<AnswerGroup>(), SizeIs(1));
  EXPECT_FALSE(hand.all<AnswerGroup>()[0]->stop);
}

// ---- Checkpoints

TEST(TrainRun, RanksWaitForTheCommitOfTheirCheckpoint) {
  Hand hand(workers(1));
  hand.began();
  hand.report(1, true, true);
  EXPECT_THAT(hand.all<UploadCheckpoint>(), SizeIs(1));
  EXPECT_THAT(hand.all<AnswerGroup>(), IsEmpty());
  hand.feed(CheckpointUploaded{0});
  EXPECT_THAT(hand.committed(), ElementsAre("checkpoint_000000"));
  ASSERT_THAT(hand.all<AnswerGroup>(), SizeIs(1));
  EXPECT_EQ(hand.all<AnswerGroup>()[0]->checkpoint, "checkpoint_000000");
}

TEST(TrainRun, CheckpointsAreCommittedInTheOrderOfTheirReports) {
  Hand hand(workers(1));
  hand.began();
  GroupReported report{
      .attempt = 1, .step = 1, .checkpoint = {.parts = {{.path = ".reporting_1"}}, .waits = false, .upload = true}};
  hand.feed(report);
  report.step = 2;
  hand.feed(report);
  hand.feed(CheckpointUploaded{1});
  EXPECT_THAT(hand.committed(), IsEmpty()) << "an earlier one is not complete";
  hand.feed(CheckpointUploaded{0});
  EXPECT_THAT(hand.committed(), ElementsAre("checkpoint_000000", "checkpoint_000001"));
}

TEST(TrainRun, ARunThatHasReturnedWaitsForItsUploads) {
  Hand hand(workers(1));
  hand.began();
  hand.feed(GroupReported{
      .attempt = 1, .step = 1, .checkpoint = {.parts = {{.path = ".reporting_1"}}, .waits = false, .upload = true}});
  EXPECT_THAT(hand.return_all(), IsEmpty());
  EXPECT_EQ(hand.run().status(), RunStatus::shutting_down);
  EXPECT_FALSE(hand.run().finished());
  EXPECT_THAT(hand.feed(CheckpointUploaded{0}), ElementsAre("finish"));
}

TEST(TrainRun, OnlyTheBestCheckpointsAndTheLatestAreKept) {
  TrainerOptions options = workers(1);
  options.run_config.checkpoint_config = {.num_to_keep = 1, .checkpoint_score_attribute = maximize("loss")};
  Hand hand(options);
  hand.began();
  hand.report(1, true);
  hand.report(2, true);
  EXPECT_THAT(hand.all<DeleteCheckpoint>(), IsEmpty()) << "one is the best, one the latest";
  hand.report(3, true);
  ASSERT_THAT(hand.all<DeleteCheckpoint>(), SizeIs(1));
  EXPECT_EQ(hand.all<DeleteCheckpoint>()[0]->directory, "checkpoint_000001");
}

TEST(TrainRun, AFailedUploadIsTriedAgainAndThenFailsTheGroup) {
  Hand hand(with_failures(1, 0));
  hand.began();
  hand.report(1, true, true);
  for (int i = 0; i < 2; ++i) {
    hand.feed(UploadFailed{0, "the storage is away", run::TryAgain::later});
    EXPECT_TRUE(hand.started(Timer::Kind::upload));
    hand.feed(TimerFired{{Timer::Kind::upload, 0}});
    EXPECT_THAT(hand.all<UploadCheckpoint>(), SizeIs(1));
  }
  hand.feed(UploadFailed{0, "the storage is away", run::TryAgain::later});
  EXPECT_EQ(hand.run().status(), RunStatus::failing);
  EXPECT_THAT(hand.all<KillWorker>(), SizeIs(1));
  EXPECT_THAT(hand.ended(0, kKilled), ElementsAre("fail"));
  EXPECT_THAT(hand.run().error(), HasSubstr("the storage is away"));
}

// ---- Failures

TEST(TrainRun, AfterTheFirstFailureTheOtherRanksHaveAMomentToReportTheirs) {
  Hand hand(workers(3));
  hand.began();
  hand.threw(1, "the connection is lost");
  EXPECT_EQ(hand.run().status(), RunStatus::failing);
  EXPECT_TRUE(hand.started(Timer::Kind::settling));
  EXPECT_THAT(hand.all<KillWorker>(), IsEmpty());
  hand.ended(2, kKilled);
  hand.ended(1);
  hand.fire(Timer::Kind::settling);
  ASSERT_THAT(hand.all<KillWorker>(), SizeIs(1)) << "only rank 0 is left";
  EXPECT_EQ(hand.all<KillWorker>()[0]->rank, 0);
  EXPECT_THAT(hand.ended(0, kKilled), ElementsAre("fail"));
  ASSERT_THAT(hand.all<TellOfFailure>(), SizeIs(1));
  const auto& causes = hand.all<TellOfFailure>()[0]->causes;
  EXPECT_THAT(causes, SizeIs(2));
  EXPECT_THAT(causes, Contains(Pair(1, "the connection is lost")));
  // The rank that died without a message is the likely cause of the other failure.
  EXPECT_TRUE(hand.run().error().starts_with("rank 2: ")) << hand.run().error();
}

TEST(TrainRun, AFailedGroupStartsAgainFromTheLatestCheckpoint) {
  Hand hand(with_failures(1, 1));
  hand.began();
  hand.report(1, true);
  hand.report(2);
  hand.threw(0, "bad luck");
  EXPECT_THAT(hand.ended(0), ElementsAre("retry", "launch"));
  ASSERT_THAT(hand.all<LaunchGroup>(), SizeIs(1));
  EXPECT_EQ(hand.all<LaunchGroup>()[0]->checkpoint, "checkpoint_000000");
  EXPECT_EQ(hand.all<LaunchGroup>()[0]->step, 1);
  hand.began();
  hand.report(2);
  EXPECT_THAT(hand.all<ShowResult>(), IsEmpty()) << "step 2 was shown in the first attempt";
  hand.report(3);
  EXPECT_THAT(hand.all<ShowResult>(), SizeIs(1));
  hand.threw(0, "bad luck");
  EXPECT_THAT(hand.ended(0), ElementsAre("fail"));
  EXPECT_EQ(hand.run().status(), RunStatus::failed);
  EXPECT_TRUE(hand.run().finished());
}

TEST(TrainRun, RepeatedFailuresWithoutAResultAreTriedAgainAfterADelay) {
  Hand hand(with_failures(1, -1));
  for (int i = 0; i < 2; ++i) {
    hand.began();
    hand.threw(0, "bad luck");
    EXPECT_THAT(hand.ended(0), ElementsAre("retry", "launch"));
  }
  hand.began();
  hand.threw(0, "bad luck");
  EXPECT_THAT(hand.ended(0), ElementsAre("retry"));
  EXPECT_EQ(hand.run().status(), RunStatus::waiting);
  EXPECT_THAT(hand.fire(Timer::Kind::retry), ElementsAre("launch"));
}

TEST(TrainRun, FailuresOfTheFunctionOfStartsAndByPreemptionAreCountedApart) {
  TrainerOptions options = with_failures(1, 0);
  options.run_config.failure_config.max_start_failures = 1;
  options.run_config.failure_config.max_preemption_failures = 1;
  Hand hand(options);
  hand.ended(0, {engine::Exit::Kind::not_started, 0, {}});
  EXPECT_EQ(hand.run().status(), RunStatus::waiting);
  hand.fire(Timer::Kind::retry);
  hand.began();
  EXPECT_THAT(hand.ended(0, {engine::Exit::Kind::signal, SIGTERM, {}}), ElementsAre("retry", "launch"));
  hand.began();
  hand.threw(0, "bad luck");
  EXPECT_THAT(hand.ended(0), ElementsAre("fail"));
}

TEST(TrainRun, ReportsThatDoNotMatchEndTheGroupAtOnce) {
  Hand hand(workers(2));
  hand.began();
  hand.feed(GroupBroke{1, "rank 1 has reported step 2, and rank 0 step 1"});
  EXPECT_THAT(hand.all<KillWorker>(), SizeIs(2));
  hand.ended(0, kKilled);
  EXPECT_THAT(hand.ended(1, kKilled), ElementsAre("fail"));
  EXPECT_EQ(hand.run().error(), "rank 1 has reported step 2, and rank 0 step 1");
}

TEST(TrainRun, MessagesOfAnEarlierAttemptCountForNothing) {
  Hand hand(with_failures(1, 1));
  hand.began();
  hand.threw(0, "bad luck");
  hand.ended(0);
  ASSERT_EQ(hand.run().attempt(), 2);
  const train::Run before = hand.run();
  EXPECT_THAT(hand.feed(GroupReported{.attempt = 1, .step = 5}), IsEmpty());
  hand.feed(GroupBegan{1});
  hand.feed(FunctionThrew{0, 1, "late"});
  hand.feed(WorkerEnded{0, 1, kKilled});
  hand.feed(GroupBroke{1, "late"});
  EXPECT_TRUE(hand.run() == before);
  EXPECT_THAT(hand.actions, IsEmpty());
}

// ---- Interruptions

TEST(TrainRun, AnInterruptedGroupStopsWithTheAnswerToItsNextReport) {
  Hand hand(workers(1));
  hand.began();
  hand.feed(RunInterrupted{});
  EXPECT_TRUE(hand.started(Timer::Kind::stopping));
  EXPECT_THAT(hand.report(1, true), ElementsAre("stop"));
  ASSERT_THAT(hand.all<AnswerGroup>(), SizeIs(1));
  EXPECT_TRUE(hand.all<AnswerGroup>()[0]->stop);
  EXPECT_EQ(hand.run().status(), RunStatus::stopping);
  EXPECT_THAT(hand.return_all(), IsEmpty());
  EXPECT_EQ(hand.run().status(), RunStatus::aborted);
  EXPECT_TRUE(hand.run().finished());
  EXPECT_THAT(hand.begin(), ElementsAre("launch"));
  EXPECT_EQ(hand.all<LaunchGroup>()[0]->checkpoint, "checkpoint_000000");
}

TEST(TrainRun, AGroupThatDoesNotStopInTimeIsKilledAndThatIsNoFailure) {
  Hand hand(with_failures(1, 0));
  hand.began();
  hand.feed(RunInterrupted{});
  hand.fire(Timer::Kind::stopping);
  EXPECT_THAT(hand.all<KillWorker>(), SizeIs(1));
  EXPECT_THAT(hand.ended(0, kKilled), IsEmpty());
  EXPECT_EQ(hand.run().status(), RunStatus::aborted);
}

TEST(TrainRun, AFailureDuringAnInterruptionIsNotCounted) {
  Hand hand(with_failures(1, 0));
  hand.began();
  hand.feed(RunInterrupted{});
  hand.threw(0, "the interrupt reached it too");
  EXPECT_THAT(hand.ended(0), IsEmpty());
  EXPECT_EQ(hand.run().status(), RunStatus::aborted);
  EXPECT_THAT(hand.begin(), ElementsAre("launch"));
}

TEST(TrainRun, AnInterruptionBetweenTwoAttemptsLeavesTheNextOneToTheNextController) {
  Hand hand(with_failures(1, -1));
  for (int i = 0; i < 3; ++i) {
    hand.began();
    hand.threw(0, "bad luck");
    hand.ended(0);
  }
  ASSERT_EQ(hand.run().status(), RunStatus::waiting);
  hand.feed(RunInterrupted{});
  EXPECT_TRUE(hand.run().finished());
  EXPECT_FALSE(hand.run().awaits({Timer::Kind::retry, hand.run().attempt()}));
  EXPECT_THAT(hand.begin(), ElementsAre("launch"));
}

TEST(TrainRun, ALostCheckpointIsReplacedByTheOneBefore) {
  TrainerOptions options = workers(1);
  Hand hand(options);
  hand.began();
  hand.report(1, true);
  hand.report(2, true);
  hand.feed(RunInterrupted{});
  hand.report(3);
  hand.return_all();
  EXPECT_THAT(hand.begin({2}), ElementsAre("lose", "launch"));
  EXPECT_EQ(hand.all<LaunchGroup>()[0]->checkpoint, "checkpoint_000000");
  EXPECT_EQ(hand.all<LaunchGroup>()[0]->step, 1);
}

TEST(TrainRun, AFinishedRunStaysFinishedForAnotherController) {
  Hand hand(workers(1));
  hand.began();
  hand.return_all();
  EXPECT_THAT(hand.begin(), IsEmpty());
  EXPECT_TRUE(hand.run().finished());
}

// ---- Groups of variable size

TEST(TrainRun, AGroupOfVariableSizeBeginsWithTheWorkersThatFit) {
  Hand hand(elastic(2, 4));
  hand.began();
  EXPECT_EQ(hand.run().world_size(), 4);
  hand.feed(ResourcesSeen{3, {.cpus = 3}});
  EXPECT_THAT(hand.report(1), IsEmpty()) << "nothing is saved yet";
  EXPECT_THAT(hand.report(2, true), ElementsAre("resize"));
  EXPECT_TRUE(hand.all<AnswerGroup>().at(0)->stop);
  EXPECT_EQ(hand.run().status(), RunStatus::resizing);
  EXPECT_THAT(hand.return_all(), ElementsAre("launch"));
  EXPECT_EQ(hand.all<LaunchGroup>().at(0)->workers, 3);
  EXPECT_EQ(hand.all<LaunchGroup>().at(0)->step, 2);
}

TEST(TrainRun, AGroupOfVariableSizeWaitsForTheLeastNumberOfWorkers) {
  Hand hand(elastic(2, 4));
  hand.feed(ResourcesSeen{1, {.cpus = 1}});
  hand.ended(0, {engine::Exit::Kind::not_started, 0, {}});
  for (Rank rank = 1; rank < 4; ++rank) hand.ended(rank, kKilled);
  hand.fire(Timer::Kind::retry);
  EXPECT_EQ(hand.run().status(), RunStatus::starved);
  EXPECT_THAT(hand.feed(ResourcesSeen{2, {.cpus = 2}}), ElementsAre("launch"));
  EXPECT_EQ(hand.run().world_size(), 2);
}

// ---- Runs that belong to a trial

TEST(TrainRun, AResultIsForwardedToTheParentBeforeItsRanksAreAnswered) {
  Hand hand(workers(1), 8, /*has_parent=*/true);
  hand.began();
  hand.report(1, true);
  ASSERT_THAT(hand.all<ForwardResult>(), SizeIs(1));
  EXPECT_EQ(hand.all<ForwardResult>()[0]->checkpoint, "checkpoint_000000");
  EXPECT_THAT(hand.all<AnswerGroup>(), IsEmpty());
  hand.feed(ResultForwarded{1, true});
  EXPECT_FALSE(hand.all<AnswerGroup>().at(0)->stop);
}

TEST(TrainRun, AParentCanEndTheRunWithItsReply) {
  Hand hand(workers(1), 8, /*has_parent=*/true);
  hand.began();
  hand.report(1);
  EXPECT_THAT(hand.feed(ResultForwarded{1, false}), ElementsAre("stop"));
  EXPECT_TRUE(hand.all<AnswerGroup>().at(0)->stop);
  EXPECT_TRUE(hand.run().ended_by_parent());
  hand.return_all();
  EXPECT_TRUE(hand.run().finished());
}

// ---- Validations

TrainerOptions with_validation() {
  TrainerOptions options = workers(2);
  options.validation.function.name = "validate";
  return options;
}

TEST(TrainRun, AValidationRunsBesideTheGroupAndCompletesTheMetrics) {
  Hand hand(with_validation(), 3);
  hand.validation.emplace();
  hand.began();
  EXPECT_THAT(hand.report(1, true), ElementsAre("validate"));
  ASSERT_THAT(hand.all<StartValidator>(), SizeIs(1));
  EXPECT_EQ(hand.all<StartValidator>()[0]->wanted.function, "validate");
  EXPECT_THAT(hand.feed(ValidatorReturned{1, 1, {{"accuracy", 0.9}}}), ElementsAre("settle_validation"));
  ASSERT_THAT(hand.all<ShowValidation>(), SizeIs(1));
  EXPECT_EQ(hand.all<ShowValidation>()[0]->metrics.get<double>("accuracy"), 0.9);
  EXPECT_EQ(hand.all<ShowValidation>()[0]->metrics.get<double>("loss"), 1);
}

TEST(TrainRun, AValidationWithoutRoomWaitsUntilTheRunHasTrained) {
  Hand hand(with_validation(), 2);
  hand.validation.emplace();
  hand.began();
  EXPECT_THAT(hand.report(1, true), IsEmpty());
  EXPECT_THAT(hand.run().lack_of_validations(), HasSubstr("they need 1 CPUs"));
  EXPECT_THAT(hand.return_all(), ElementsAre("validate"));
  EXPECT_EQ(hand.run().status(), RunStatus::validating);
  EXPECT_THAT(hand.feed(ValidatorReturned{1, 1, {}}), ElementsAre("settle_validation", "finish"));
  EXPECT_FALSE(hand.run().finished()) << "the validator's process has not ended";
  hand.feed(ValidatorEnded{1, 1, kClean});
  EXPECT_TRUE(hand.run().finished());
}

TEST(TrainRun, AValidationThatFailsIsTriedAgainAndNeverFailsTheRun) {
  TrainerOptions options = with_validation();
  options.validation.max_retries = 1;
  Hand hand(options, 3);
  hand.validation.emplace();
  hand.began();
  hand.report(1, true);
  EXPECT_THAT(hand.feed(ValidatorThrew{1, 1, "bad luck"}), IsEmpty());
  EXPECT_THAT(hand.feed(ValidatorEnded{1, 1, kClean}), ElementsAre("validate"));
  EXPECT_THAT(hand.feed(ValidatorEnded{1, 2, kKilled}), ElementsAre("settle_validation"));
  EXPECT_EQ(hand.all<ShowValidation>().at(0)->status, ReportedCheckpointStatus::validation_failed);
  EXPECT_THAT(hand.return_all(), ElementsAre("finish"));
}

TEST(TrainRun, AValidatorOverItsTimeIsKilled) {
  TrainerOptions options = with_validation();
  options.validation.max_retries = 0;
  Hand hand(options, 3);
  hand.validation = WantedValidation{.timeout_s = 5};
  hand.began();
  hand.report(1, true);
  EXPECT_TRUE(hand.started(Timer::Kind::validation));
  hand.feed(TimerFired{{Timer::Kind::validation, 1}});
  EXPECT_THAT(hand.all<KillValidator>(), SizeIs(1));
  hand.feed(ValidatorEnded{1, 1, kKilled});
  EXPECT_EQ(hand.all<ShowValidation>().at(0)->status, ReportedCheckpointStatus::validation_timed_out);
}

TEST(TrainRun, AnInterruptedValidationBeginsAnewWithTheNextController) {
  Hand hand(with_validation(), 3);
  hand.validation.emplace();
  hand.began();
  hand.report(1, true);
  hand.return_all();
  hand.feed(RunInterrupted{});
  EXPECT_THAT(hand.all<KillValidator>(), SizeIs(1));
  hand.feed(ValidatorEnded{1, 1, kKilled});
  EXPECT_TRUE(hand.run().finished());
  EXPECT_EQ(hand.run().status(), RunStatus::validating);
  EXPECT_THAT(hand.begin(), ElementsAre("validate"));
  EXPECT_THAT(hand.feed(ValidatorReturned{1, 2, {}}), ElementsAre("settle_validation", "finish"));
}

}  // namespace
}  // namespace cadre::train
