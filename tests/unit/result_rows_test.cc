#include "train/result_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "train/run.h"

namespace cadre::train {
namespace {

// A Run of one worker, and the result rows for the events fed to it.
class Subject {
 public:
  explicit Subject(TrainerOptions options = {.run_config = {.failure_config = {.max_failures = 1}}})
      : run_(std::move(options)) {}

  std::optional<Dict> feed(double time, const Event& event) {
    Actions actions;
    run_.handle(event, actions);
    return rows_.add(event, actions, time);
  }
  std::optional<Dict> report(double time, std::int64_t step, Metrics metrics = {}, GroupCheckpoint checkpoint = {}) {
    return feed(time, GroupReported{run_.attempt(), step, std::move(metrics), std::move(checkpoint)});
  }
  void fail(double time) {
    feed(time, FunctionThrew{0, run_.attempt(), "out of luck"});
    feed(time, WorkerEnded{0, run_.attempt(), {engine::Exit::Kind::code, 0, {}}});
  }
  const Run& run() const { return run_; }

 private:
  Run run_;
  ResultRows rows_;
};

GroupCheckpoint checkpoint(CheckpointPart part, bool waits = true) {
  return {.parts = {std::move(part)}, .waits = waits, .upload = part.kind == CheckpointPart::Kind::borrowed};
}

TEST(ResultRows, ARowHasTheColumnsOfATrialsRows) {
  Subject subject;
  subject.feed(1000, ControllerStarted{.hostname = "host"});
  subject.feed(1001, GroupBegan{1});
  const auto row = subject.report(1003.5, 1, {{"loss", 0.5}}, checkpoint({.path = ".reporting_1"}));
  ASSERT_TRUE(row);
  EXPECT_EQ(to_json(*row), R"({"loss": 0.5, "timestamp": 1003, "training_iteration": 1, "date": ")" +
                               base::date_text(1003.5) +
                               R"(", "time_this_iter_s": 2.5, "time_total_s": 2.5, "hostname": "host", )"
                               R"("time_since_restore": 2.5, "iterations_since_restore": 1, )"
                               R"("checkpoint_dir_name": "checkpoint_000000"})");
  EXPECT_TRUE(subject.report(1004, 2)->back().second.is_null()) << "it has no checkpoint";
}

TEST(ResultRows, WhatTheFunctionReportsStays) {
  Subject subject;
  subject.feed(1000, ControllerStarted{.hostname = "host"});
  subject.feed(1000, GroupBegan{1});
  subject.report(1010, 1, {{"time_this_iter_s", 3}});
  const Metrics reported{{"training_iteration", 70}, {"hostname", "mine"}, {"checkpoint_dir_name", 4}, {"date", {}}};
  const Metrics row(*subject.report(1020, 2, reported));
  for (const auto& [key, value] : reported.dict()) EXPECT_EQ(row.at(key), value) << key;
  EXPECT_EQ(row.get<double>("time_total_s"), 13) << "by its own account of the first iteration";
  EXPECT_EQ(row.dict().size(), 9u);
}

TEST(ResultRows, AStepThatIsRepeatedHasOneRowAndCountsOnceInTheTotal) {
  Subject subject;
  subject.feed(1000, ControllerStarted{});
  subject.feed(1000, GroupBegan{1});
  EXPECT_TRUE(subject.report(1001, 1));
  EXPECT_TRUE(subject.report(1002, 2));
  subject.fail(1010);
  ASSERT_EQ(subject.run().attempt(), 2);
  subject.feed(1020, GroupBegan{2});
  EXPECT_FALSE(subject.report(1025, 1));
  EXPECT_FALSE(subject.report(1030, 2));
  const Metrics row(*subject.report(1034, 3));
  EXPECT_EQ(row.get<double>("time_this_iter_s"), 4);
  EXPECT_EQ(row.get<double>("time_total_s"), 6);
  EXPECT_EQ(row.get<double>("time_since_restore"), 14);
  EXPECT_EQ(row.get<std::int64_t>("iterations_since_restore"), 3);
}

TEST(ResultRows, TimeThatRanksWaitInReportIsNobodys) {
  Subject subject;
  subject.feed(1000, ControllerStarted{});
  subject.feed(1000, GroupBegan{1});
  const auto copied = checkpoint({.kind = CheckpointPart::Kind::borrowed, .path = "/users"});
  EXPECT_EQ(Metrics(*subject.report(1002, 1, {}, copied)).get<std::string>("checkpoint_dir_name"), "checkpoint_000000")
      << "although it is not committed yet";
  subject.feed(1050, CheckpointUploaded{0});  // report() returns in the ranks
  EXPECT_EQ(Metrics(*subject.report(1053, 2)).get<double>("time_this_iter_s"), 3);
}

TEST(ResultRows, ACheckpointThatAFunctionIsStillToNameHasNoNameInItsRow) {
  Subject subject;
  subject.feed(1000, ControllerStarted{});
  subject.feed(1000, GroupBegan{1});
  const auto promised = checkpoint({.kind = CheckpointPart::Kind::promised}, false);
  EXPECT_TRUE(subject.report(1002, 1, {}, promised)->back().second.is_null());
}

TEST(ResultRows, WhatAValidationFindsBelongsToTheRowOfItsReport) {
  ShowValidation validation{.step = 7, .reported = {{"loss", 1}}, .validated = {{"loss", 2}}};
  const auto more = amendment_of(validation);
  ASSERT_TRUE(more);
  EXPECT_EQ(more->number, 6);
  EXPECT_EQ(to_json(more->values), R"({"validation": {"loss": 2}})");
  EXPECT_EQ(to_json(more->row), R"({"training_iteration": 7})");
  validation.reported = {{"timesteps_total", 700}, {"training_iteration", 70}};
  EXPECT_EQ(to_json(amendment_of(validation)->row), R"({"timesteps_total": 700, "training_iteration": 70})");
  validation.validated = {};
  EXPECT_FALSE(amendment_of(validation)) << "it has failed";
}

}  // namespace
}  // namespace cadre::train
