#include "train/checkpoint_questions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cadre::train {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr CheckpointQuestions::TimePoint kNow{};
constexpr auto kSecond = std::chrono::seconds(1);

// Its part is still to be copied.
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
  CheckpointQuestions questions;
};

TEST_F(CheckpointQuestionsTest, WaitForWhatTheAskerHasReportedAndForNothingElse) {
  report(1);
  report(2);
  report(3);
  questions.ask(7, {.step = 2}, kNow);
  upload(0);
  EXPECT_THAT(questions.take_replies(checkpoints, kNow), IsEmpty());
  upload(1);
  const auto replies = questions.take_replies(checkpoints, kNow);
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].asker, 7u);
  EXPECT_THAT(steps_of(replies), ElementsAre(1, 2));
  EXPECT_THAT(questions.take_replies(checkpoints, kNow), IsEmpty()) << "once";
}

TEST_F(CheckpointQuestionsTest, GetWhatThereIsWhenTheirTimeIsOver) {
  report(1);
  upload(0);
  report(2);
  questions.ask(7, {.step = 2, .timeout_ms = 1000}, kNow);
  EXPECT_EQ(questions.next_deadline(), kNow + kSecond);
  EXPECT_THAT(questions.take_replies(checkpoints, kNow), IsEmpty());
  EXPECT_THAT(steps_of(questions.take_replies(checkpoints, kNow + kSecond)), ElementsAre(1));
  EXPECT_EQ(questions.next_deadline(), std::nullopt);
}

TEST_F(CheckpointQuestionsTest, AreAnsweredInTheOrderOfTheReportsWhateverTheScore) {
  checkpoints = Checkpoints(
      CheckpointConfig{.num_to_keep = 2, .checkpoint_score_attribute = "step", .checkpoint_score_order = Mode::min});
  for (std::int64_t step = 1; step <= 4; ++step) {
    report(step);
    upload(step - 1);
  }
  questions.ask(7, {.step = 4}, kNow);
  EXPECT_THAT(steps_of(questions.take_replies(checkpoints, kNow)), ElementsAre(1, 2, 4)) << "two, and the latest";
}

}  // namespace
}  // namespace cadre::train
