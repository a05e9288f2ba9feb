#include "train/checkpoint_questions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cadre::train {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr CheckpointQuestions::TimePoint kNow{};
constexpr auto kSecond = std::chrono::seconds(1);

// Returns a report whose checkpoint part is still to be copied.
GroupReported borrowed_report(std::int64_t step) {
  return {.step = step,
          .metrics = {{"step", step}},
          .checkpoint = {.parts = {{.kind = CheckpointPart::Kind::borrowed, .path = "/tmp"}}, .upload = true}};
}

std::vector<std::int64_t> steps_of(const std::vector<CheckpointQuestions::Reply>& replies) {
  std::vector<std::int64_t> steps;
  for (const CheckpointEntry& entry : to_checkpoint_entries(replies.at(0).reply.content))
    steps.push_back(entry.metrics.get<std::int64_t>("step"));
  return steps;
}

class CheckpointQuestionsTest : public ::testing::Test {
 protected:
  void report(std::int64_t step) { checkpoints.report(borrowed_report(step), actions); }
  void upload(CheckpointNumber number) {
    checkpoints.uploaded({number}, actions);
    checkpoints.commit_ready(actions);
  }

  Actions actions;
  Checkpoints checkpoints{CheckpointConfig{}};
  Validations validations{ValidationConfig{}};
  std::string lack = {};
  bool interrupted = false;
  CheckpointQuestions questions;
};

TEST_F(CheckpointQuestionsTest, WaitForWhatTheAskerHasReportedAndForNothingElse) {
  report(1);
  report(2);
  report(3);
  questions.ask({7, 1}, {.step = 2}, kNow);
  upload(0);
  EXPECT_THAT(questions.take_replies(checkpoints, validations, lack, interrupted, kNow), IsEmpty());
  upload(1);
  const auto replies = questions.take_replies(checkpoints, validations, lack, interrupted, kNow);
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].caller.worker, 7u);
  EXPECT_THAT(steps_of(replies), ElementsAre(1, 2));
  EXPECT_THAT(questions.take_replies(checkpoints, validations, lack, interrupted, kNow), IsEmpty()) << "once";
}

TEST_F(CheckpointQuestionsTest, GetWhatThereIsWhenTheirTimeIsOver) {
  report(1);
  upload(0);
  report(2);
  questions.ask({7, 1}, {.step = 2, .timeout_ms = 1000}, kNow);
  EXPECT_EQ(questions.next_deadline(), kNow + kSecond);
  EXPECT_THAT(questions.take_replies(checkpoints, validations, lack, interrupted, kNow), IsEmpty());
  EXPECT_THAT(steps_of(questions.take_replies(checkpoints, validations, lack, interrupted, kNow + kSecond)),
              ElementsAre(1));
  EXPECT_EQ(questions.next_deadline(), std::nullopt);
}

TEST_F(CheckpointQuestionsTest, AreAnsweredInTheOrderOfTheReportsWhateverTheScore) {
  checkpoints = Checkpoints(
      CheckpointConfig{.num_to_keep = 2, .checkpoint_score_attribute = "step", .checkpoint_score_order = Mode::min});
  for (std::int64_t step = 1; step <= 4; ++step) {
    report(step);
    upload(step - 1);
  }
  questions.ask({7, 1}, {.step = 4}, kNow);
  EXPECT_THAT(steps_of(questions.take_replies(checkpoints, validations, lack, interrupted, kNow)), ElementsAre(1, 2, 4))
      << "two, and the latest";
}

GroupReported validated_report(std::int64_t step) {
  GroupReported report{.step = step, .metrics = {{"step", step}}, .checkpoint = {.parts = {{.path = "of_0"}}}};
  report.checkpoint.validation.emplace(WantedValidation{.function = "validate"});
  return report;
}

TEST_F(CheckpointQuestionsTest, WaitForValidationsWhereTheyAskForThem) {
  checkpoints.report(validated_report(1), actions);
  for (const CommittedCheckpoint& committed : checkpoints.commit_ready(actions))
    validations.add(committed.id, *committed.validation, checkpoints);
  questions.ask({7, 1}, {.step = 1, .validated = true}, kNow);
  questions.ask({8, 1}, {.step = 1, .validated = false}, kNow);
  const auto replies = questions.take_replies(checkpoints, validations, lack, interrupted, kNow);
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].caller.worker, 8u);
  EXPECT_EQ(to_checkpoint_entries(replies[0].reply.content).at(0).status, ReportedCheckpointStatus::pending_validation);

  validations.start(resources::Cluster(Resources{.cpus = 1}), checkpoints, actions);
  validations.returned({.checkpoint = 1, .attempt = 1, .metrics = {{"step", 10}, {"accuracy", 0.5}}}, checkpoints,
                       actions);
  const auto later = questions.take_replies(checkpoints, validations, lack, interrupted, kNow);
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0].caller.worker, 7u);
  const CheckpointEntry entry = to_checkpoint_entries(later[0].reply.content).at(0);
  EXPECT_EQ(entry.status, ReportedCheckpointStatus::validated);
  EXPECT_EQ(entry.metrics, (Metrics{{"step", 10}, {"accuracy", 0.5}})) << "those of the validation count";
  EXPECT_EQ(entry.reported_metrics, (Metrics{{"step", 1}}));
  EXPECT_EQ(entry.validation_metrics, (Metrics{{"step", 10}, {"accuracy", 0.5}}));
}

TEST_F(CheckpointQuestionsTest, AreAnErrorWhereTheyWouldWaitForEver) {
  checkpoints.report(validated_report(1), actions);
  for (const CommittedCheckpoint& committed : checkpoints.commit_ready(actions))
    validations.add(committed.id, *committed.validation, checkpoints);
  lack = "they need a GPU";
  questions.ask({7, 1}, {.step = 1}, kNow);
  questions.ask({8, 1}, {.step = 1, .timeout_ms = 1000}, kNow);
  const auto replies = questions.take_replies(checkpoints, validations, lack, interrupted, kNow);
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].caller.worker, 7u);
  EXPECT_THAT(replies[0].reply.error, ::testing::HasSubstr("for ever for validations: they need a GPU"));
}

TEST_F(CheckpointQuestionsTest, AreAnErrorInAnInterruptedRunThatTheyWouldHold) {
  report(1);
  upload(0);
  report(2);
  interrupted = true;
  questions.ask({7, 1}, {.step = 1}, kNow);
  questions.ask({8, 1}, {.step = 2}, kNow);
  const auto replies = questions.take_replies(checkpoints, validations, lack, interrupted, kNow);
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(replies[0].reply.error, "") << "its checkpoints are there";
  EXPECT_EQ(replies[1].reply.error, "the run is interrupted");
}

TEST_F(CheckpointQuestionsTest, MayBeSeveralOfOneWorker) {
  report(1);
  questions.ask({7, 1}, {.step = 1}, kNow);
  questions.ask({7, 2}, {.step = 0}, kNow);
  const auto replies = questions.take_replies(checkpoints, validations, lack, interrupted, kNow);
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].caller, (channel::Caller{7, 2}));
}

}  // namespace
}  // namespace cadre::train
