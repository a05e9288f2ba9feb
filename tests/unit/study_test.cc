#include "cadre/tune/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "base/file.h"
#include "cadre/tune/importance.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::tune {
namespace {

using test_support::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Value not_today() { throw std::runtime_error("no data today"); }

Space line() { return {{"x", uniform(0, 1)}, {"n", randint(0, 5)}}; }
TuneConfig minimized() { return {.metric = minimize("loss"), .seed = 3}; }

TEST(Study, SuggestsConfigsAndRemembersTheBest) {
  Study study(line(), minimized());
  const Suggestion first = *study.suggest();
  const Suggestion second = *study.suggest();
  EXPECT_EQ(first.trial, 0U);
  EXPECT_TRUE(first.config.contains("x") && first.config.contains("n"));
  EXPECT_NE(first.config, second.config);
  EXPECT_THAT(study.open_trials(), ElementsAre(0, 1));
  EXPECT_EQ(study.best(), std::nullopt);
  study.report(1, {{"loss", 7}});
  study.observe(1, {{"loss", 3}});
  study.observe(0, {{"loss", std::numeric_limits<double>::quiet_NaN()}});
  EXPECT_EQ(study.best(), 1U);
  EXPECT_EQ(study.result(1).get<double>("loss"), 3);
  EXPECT_THAT(study.open_trials(), IsEmpty());
}

TEST(Study, AStudyOfTheSameSeedSuggestsTheSame) {
  Study one(line(), minimized());
  Study other(line(), minimized());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(one.suggest()->config, other.suggest()->config);
}

TEST(Study, FailedTrialsAreNeverTheBest) {
  Study study(line(), minimized());
  study.suggest();
  study.report(0, {{"loss", 1}});
  study.end(0, TrialStatus::error);
  EXPECT_EQ(study.best(), std::nullopt);
  EXPECT_THROW(study.end(0, TrialStatus::running), InvalidArgument);
}

TEST(Study, TakesConfigsOfTheProgramsOwnChoice) {
  Study study(line(), minimized());
  const Suggestion own = study.add({{"x", 0.25}});
  EXPECT_EQ(own.config.get<double>("x"), 0.25);
  EXPECT_TRUE(own.config.contains("n"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { study.add({{"x", 2}}); }), HasSubstr("2 is not in uniform(0.0, 1.0)"));
  TuneConfig with_point = minimized();
  with_point.points_to_evaluate = {{{"x", 0.5}}};
  Study other(line(), with_point);
  EXPECT_THROW(other.add({{"x", 0.25}}), InvalidArgument);
  EXPECT_EQ(other.suggest()->config.get<double>("x"), 0.5);
  EXPECT_EQ(other.add({{"x", 0.25}}).trial, 1U);
}

TEST(Study, ATrialThatIsNotOpenIsNamed) {
  Study study(line(), minimized());
  EXPECT_THAT(message_of<NotFound>([&] { study.observe(0, {{"loss", 1}}); }), HasSubstr("it was never suggested"));
  study.suggest();
  study.observe(0, {{"loss", 1}});
  EXPECT_THAT(message_of<NotFound>([&] { study.report(0, {{"loss", 1}}); }), HasSubstr("it has ended"));
}

TEST(Study, AFunctionThatThrowsMakesNoTrial) {
  Study study({{"f", fn<not_today>}, {"x", uniform(0, 1)}}, minimized());
  EXPECT_THAT(message_of<InvalidArgument>([&] { study.suggest(); }), HasSubstr("no data today"));
  EXPECT_EQ(study.num_trials(), 0);
}

TEST(Study, BadOptionsAreNamed) {
  EXPECT_THAT(message_of<InvalidArgument>([] { Study({{"x", uniform(1, 1)}}, minimized()); }),
              HasSubstr("its lower bound 1.0 is not below"));
  EXPECT_THAT(message_of<InvalidArgument>([] { Study(line(), {.metric = "loss"}); }), HasSubstr("loss"));
}

// ---- In a directory

class StoredStudy : public ::testing::Test {
 protected:
  Study begin() const { return Study(place_, line(), minimized()); }
  std::string text() const { return base::read_file(file_); }

  test_support::TemporaryDirectory directory_;
  std::filesystem::path place_ = directory_.path() / "here" / "study";
  std::filesystem::path file_ = place_ / "study.jsonl";
};

TEST_F(StoredStudy, GoesOnInAnotherProcessAsItWouldHave) {
  Study uninterrupted(line(), minimized());
  for (int i = 0; i < 4; ++i) {
    Study study = i == 0 ? begin() : Study::open(place_);
    const Suggestion expected = *uninterrupted.suggest();
    const Suggestion suggested = *study.suggest();
    EXPECT_EQ(suggested.trial, expected.trial);
    EXPECT_EQ(suggested.config, expected.config);
    if (i % 2 == 0) study.observe(suggested.trial, {{"loss", i}});
  }
  const Study again = begin();  // with the same options
  EXPECT_EQ(again.num_trials(), 4);
  EXPECT_THAT(again.open_trials(), ElementsAre(1, 3));
  EXPECT_EQ(again.best(), 0U);
}

TEST_F(StoredStudy, OtherOptionsAreRefused) {
  begin();
  EXPECT_THAT(message_of<InvalidArgument>([&] { Study(place_, {{"x", uniform(0, 2)}}, minimized()); }),
              HasSubstr("param_space"));
  EXPECT_EQ(begin().num_trials(), 0);
}

TEST_F(StoredStudy, ALastLineThatWasNotFinishedIsDropped) {
  {
    Study study = begin();
    study.suggest();
    study.observe(0, {{"loss", 1}});
  }
  const std::string whole = text();
  for (std::size_t cut = 1; cut < 30; cut += 7) {
    base::write_file(file_, whole.substr(0, whole.size() - cut));
    Study study = Study::open(place_);
    EXPECT_THAT(study.open_trials(), ElementsAre(0));
    study.observe(0, {{"loss", 1}});
    EXPECT_EQ(text(), whole);
  }
}

TEST_F(StoredStudy, ADamagedLineIsNamed) {
  begin().suggest();
  std::string damaged = text();
  damaged.insert(damaged.find('\n') + 5, "\"");
  base::write_file(file_, damaged);
  EXPECT_THAT(message_of<StorageError>([&] { Study::open(place_); }), HasSubstr("line 2 of"));
  base::write_file(file_, "{\"study\": 2}\n");
  EXPECT_THAT(message_of<StorageError>([&] { Study::open(place_); }), HasSubstr("newer version"));
  EXPECT_THROW(Study::open(directory_.path()), NotFound);
}

// ---- Results

// Tells a study of 30 trials, of which the second fails and the last is open.
void fill(Study& study) {
  for (TrialIndex trial = 0; trial < 30; ++trial) {
    const Config config = study.suggest()->config;
    const double x = config.get<double>("x");
    if (trial == 29) return;
    study.report(trial, {{"loss", x + 1}, {"size", 1 - x}});
    trial == 1 ? study.end(trial, TrialStatus::error) : study.observe(trial, {{"loss", x}, {"size", 1 - x}});
  }
}

void expect_results(const ResultGrid& grid) {
  ASSERT_EQ(grid.size(), 30U);
  EXPECT_EQ(grid[1].status, TrialStatus::error);
  EXPECT_EQ(grid[29].status, TrialStatus::running);
  EXPECT_EQ(grid[0].num_results(), 2U);
  EXPECT_EQ(grid[0].metrics_history().at(0).get<double>("loss"), grid[0].config.get<double>("x") + 1);
  EXPECT_EQ(grid[0].config_at(1), grid[0].config);
  const double best = grid.get_best_result().metrics.get<double>("loss");
  EXPECT_EQ(best, std::ranges::min(grid.scores("loss", Scope::min), {}, [](const auto& score) {
                    return score.value_or(10);
                  }).value());
  EXPECT_EQ(grid.pareto_front({minimize("loss"), minimize("size")}).size(), 28U) << "all that have not failed";
  EXPECT_EQ(importances(grid).at(0).key, "x");
}

TEST(StudyResults, AreThoseOfAnExperiment) {
  Study study(line(), minimized());
  fill(study);
  expect_results(study.results());
}

TEST(StudyResults, CanBeReadWhileTheStudyIsOpen) {
  const test_support::TemporaryDirectory directory;
  Study study(directory / "study", line(), minimized());
  fill(study);
  expect_results(ResultGrid::from_directory(directory / "study"));
  expect_results(study.results());
  EXPECT_EQ(ResultGrid::from_directory(directory / "study").summary().name, "study");
}

TEST(StudyResults, NeedNoSearcher) {
  const test_support::TemporaryDirectory directory;
  {
    Study study(directory.path(), line(), minimized());
    fill(study);
  }
  std::string text = base::read_file(directory / "study.jsonl");
  text.replace(text.find("RandomSearch"), 12, "SomebodyElse");
  std::ofstream(directory / "study.jsonl") << text << "{\"add\": 30, \"con";
  expect_results(ResultGrid::from_directory(directory.path()));
  EXPECT_THROW(Study::open(directory.path()), InvalidArgument);
}

}  // namespace
}  // namespace cadre::tune
