#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include <cmath>

#include "base/file.h"
#include "support/event_file.h"
#include "support/temporary_directory.h"
#include "tune/flat_row.h"
#include "tune/loggers/pbt_log.h"
#include "tune/loggers/progress_csv.h"
#include "tune/loggers/trial_files.h"

namespace cadre::tune {
namespace {

using cadre::test_support::content_of;
using cadre::test_support::TemporaryDirectory;

TEST(Flatten, NestedKeysFollowTheOthersAndListsStay) {
  const Dict flat = flatten({{"a", {{"b", 1}, {"c", {{"d", 2}}}}}, {"x", 3}, {"list", list(1)}, {"empty", Dict{}}});
  std::string keys;
  for (const auto& [key, value] : flat) keys += key + " ";
  EXPECT_EQ(keys, "x list a/b a/c/d ");
}

TEST(ProgressCsv, WritesValuesAsPythonsCsvDoes) {
  const TemporaryDirectory directory;
  ProgressCsv csv(directory / "progress.csv");
  csv.add({{"loss", 1.0},
           {"txt", "he,\"y"},
           {"n", 1},
           {"done", false},
           {"lst", list(1, 2)},
           {"none", {}},
           {"nan", std::nan("")}});
  csv.flush();
  EXPECT_EQ(content_of(directory / "progress.csv"),
            "loss,txt,n,done,lst,none,nan\n1.0,\"he,\"\"y\",1,False,\"[1, 2]\",,nan\n");
}

TEST(ProgressCsv, AMetricThatComesLaterWidensEarlierRows) {
  const TemporaryDirectory directory;
  ProgressCsv csv(directory / "progress.csv");
  csv.add({{"a", 1}, {"text", "two\nlines"}});
  csv.flush();
  csv.add({{"a", 2}, {"b", 3}, {"text", "x"}});
  csv.add({{"b", 4}, {"c", 5}});
  csv.flush();
  EXPECT_EQ(content_of(directory / "progress.csv"), "a,text,b,c\n1,\"two\nlines\",,\n2,x,3,\n,,4,5\n");
}

TEST(ProgressCsv, AMetricWithoutANameHasAColumn) {
  const TemporaryDirectory directory;
  ProgressCsv csv(directory / "progress.csv");
  csv.add({{"", 1}, {"loss", 0.5}});
  csv.flush();
  EXPECT_EQ(content_of(directory / "progress.csv"), ",loss\n1,0.5\n");
}

TEST(ProgressCsv, AnExistingFileIsWrittenAnew) {
  const TemporaryDirectory directory;
  base::replace_file(directory / "progress.csv", "old\n1\n");
  ProgressCsv csv(directory / "progress.csv");
  csv.add({{"new", 2}});
  csv.flush();
  EXPECT_EQ(content_of(directory / "progress.csv"), "new\n2\n");
}

TEST(ProgressCsv, AFileThatIsResumedKeepsItsRowsAndColumns) {
  const TemporaryDirectory directory;
  base::replace_file(directory / "progress.csv", "a,\"b,\"\"c\",d\n1,2,3\n");
  ProgressCsv csv(directory / "progress.csv");
  csv.resume({});
  csv.add({{"b,\"c", 5}, {"a", 4}});
  csv.flush();
  csv.add({{"e", 6}});
  csv.flush();
  EXPECT_EQ(content_of(directory / "progress.csv"), "a,\"b,\"\"c\",d,e\n1,2,3,\n4,5,,\n,,,6\n");
}

TEST(ProgressCsv, AMetricNamedByItsStepGetsNoColumnBeyondTheLimit) {
  const TemporaryDirectory directory;
  ProgressCsv csv(directory / "progress.csv");
  const auto add = [&](std::size_t step) { csv.add({{"loss", 1}, {"loss_" + std::to_string(step), 2}}); };
  for (std::size_t step = 1; step < ProgressCsv::kMostColumns; ++step) add(step);
  EXPECT_FALSE(csv.lacks_columns());
  add(ProgressCsv::kMostColumns);
  EXPECT_TRUE(csv.lacks_columns());
  csv.flush();
  const std::string content = content_of(directory / "progress.csv");
  EXPECT_EQ(std::ranges::count(content.substr(0, content.find('\n')), ','), ProgressCsv::kMostColumns - 1);
  EXPECT_EQ(std::ranges::count(content, '\n'), ProgressCsv::kMostColumns + 1);
  EXPECT_EQ(content.substr(content.rfind('\n', content.size() - 2) + 1),
            "1" + std::string(ProgressCsv::kMostColumns - 1, ',') + "\n");
}

TEST(ProgressCsv, TheFirstResultHasAColumnForEachMetric) {
  const TemporaryDirectory directory;
  ProgressCsv csv(directory / "progress.csv");
  Dict row;
  for (std::size_t i = 0; i <= ProgressCsv::kMostColumns; ++i) row.emplace_back("m" + std::to_string(i), 1);
  csv.add(row);
  EXPECT_FALSE(csv.lacks_columns());
  row.emplace_back("late", 1);
  csv.add(row);
  EXPECT_TRUE(csv.lacks_columns());
}

TEST(ErrorFile, TheNewestFailuresStay) {
  const TemporaryDirectory directory;
  ErrorFile file(directory / "error.txt");
  const std::string message = "why\n" + std::string(64 << 10, 'x');
  std::size_t most = 0;
  for (std::int64_t attempt = 1; attempt <= 100; ++attempt) {
    file.add(attempt, message);
    const std::string content = content_of(directory / "error.txt");
    most = std::max(most, content.size());
    ASSERT_TRUE(content.ends_with("Attempt " + std::to_string(attempt) + ": " + message + "\n"));
  }
  EXPECT_LE(most, ErrorFile::kMostBytes);
  EXPECT_THAT(content_of(directory / "error.txt"),
              ::testing::MatchesRegex("Earlier failures are left out.\nAttempt [0-9]+: why\n(.|\n)*"));
  EXPECT_GE(content_of(directory / "error.txt").size(), ErrorFile::kMostBytes / 3);
}

// As a snapshot remembers them.
TEST(TrialFiles, EveryCutAndEveryFlippedBitIsNoticedAndWhatCameLaterIsCutOff) {
  const TemporaryDirectory directory;
  TrialFiles::Stamp stamp;
  {
    TrialFiles files(directory.path());
    files.add({.metrics = {{"loss", 1}}}, 1000);
    files.add({.metrics = {{"loss", 2}, {"more", "x"}}}, 1001);
    files.add_error(1, "bad luck");
    files.flush();
    stamp = files.stamp();
    files.add({.metrics = {{"loss", 3}, {"more", "y"}}}, 1002);  // after the snapshot
    files.add_error(2, "again");
    files.flush();
  }
  std::map<std::string, std::string> contents;
  const std::map<std::string, std::int64_t> sizes{{"result.json", stamp.json.size},
                                                  {"progress.csv", stamp.csv.size},
                                                  {"error.txt", stamp.errors.size},
                                                  {stamp.tensorboard.name, stamp.tensorboard.content.size}};
  for (const auto& [name, stamped] : sizes) contents[name] = content_of(directory / name);
  for (const auto& [name, content] : contents) {
    for (const auto& [other, whole] : contents) base::replace_file(directory / other, whole);
    const auto size = static_cast<std::size_t>(sizes.at(name));
    ASSERT_LT(size, content.size());
    for (std::size_t cut = 0; cut < size; ++cut) {
      base::replace_file(directory / name, content.substr(0, cut));
      EXPECT_FALSE(TrialFiles(directory.path()).resume(stamp)) << name << " cut at " << cut;
    }
    for (std::size_t bit = 0; bit < size * 8; ++bit) {
      std::string flipped = content;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      base::replace_file(directory / name, flipped);
      EXPECT_FALSE(TrialFiles(directory.path()).resume(stamp)) << name << " bit " << bit;
    }
    for (std::size_t cut = size; cut <= content.size(); ++cut) {
      base::replace_file(directory / name, content.substr(0, cut));
      EXPECT_TRUE(TrialFiles(directory.path()).resume(stamp)) << name << " cut at " << cut;
      EXPECT_EQ(content_of(directory / name), content.substr(0, size));
    }
  }
}

TEST(TrialFiles, ResumedTheyGoOn) {
  const TemporaryDirectory directory;
  {
    TrialFiles files(directory.path());
    files.add({.metrics = {{"loss", 1}}}, 1000);
    files.add_error(1, "bad luck");
    files.flush();
  }
  TrialFiles files(directory.path());
  files.resume();
  files.add({.metrics = {{"loss", 2}}}, 1001);
  files.add_error(2, "again");
  files.flush();
  EXPECT_THAT(content_of(directory / "progress.csv"),
              ::testing::StartsWith("loss,checkpoint_dir_name,done\n1,,False\n2,"));
  EXPECT_EQ(std::ranges::count(content_of(directory / "result.json"), '\n'), 2);
  EXPECT_EQ(test_support::event_values(content_of(directory / "events.out.tfevents.1000.localhost")).size(), 4u);
  EXPECT_EQ(content_of(directory / "error.txt"), "Attempt 1: bad luck\nAttempt 2: again\n");
}

TEST(TrialFiles, AResultIsALineOfJsonWithItsConfig) {
  const TemporaryDirectory directory;
  TrialFiles files(directory.path());
  files.add({.trial = 0,
             .metrics = {{"loss", 0.5}},
             .checkpoint_dir_name = "checkpoint_000000",
             .done = true,
             .config = {{"lr", 0.1}}},
            1000);
  files.flush();
  EXPECT_EQ(
      content_of(directory / "result.json"),
      "{\"loss\": 0.5, \"checkpoint_dir_name\": \"checkpoint_000000\", \"done\": true, \"config\": {\"lr\": 0.1}}\n");
  EXPECT_EQ(content_of(directory / "progress.csv"), "loss,checkpoint_dir_name,done\n0.5,checkpoint_000000,True\n");
}

Trial trial(TrialIndex index, std::string tag) {
  Trial made;
  made.index = index;
  made.id = "0000" + std::to_string(index);
  made.tag = std::move(tag);
  return made;
}

TEST(PbtLog, OnlyPopulationBasedTrainingLogsItsExploitsAndOnlyWhereItIsTold) {
  EXPECT_TRUE(logs_exploits(PopulationBasedTraining()));
  EXPECT_FALSE(logs_exploits(PopulationBasedTraining{.log_config = false}));
  EXPECT_FALSE(logs_exploits(PopulationBasedTrainingReplay()));
  EXPECT_FALSE(logs_exploits(FIFO()));
}

TEST(PbtLog, APolicyIsTheHistoryThatLedToTheTrial) {
  const TemporaryDirectory directory;
  PbtLog log(directory.path());
  const auto exploit = [&](TrialIndex target, TrialIndex donor, std::int64_t iteration) {
    log.add({.target = target,
             .donor = donor,
             .target_iteration = 4,
             .donor_iteration = iteration,
             .donor_config = {{"lr", 0.2}},
             .new_config = {{"lr", 0.24}}},
            trial(target, std::to_string(target)), trial(donor, std::to_string(donor)));
  };
  exploit(0, 3, 5);
  exploit(1, 0, 10);
  exploit(0, 2, 15);  // 2 has no history: what led to 0 before is over
  log.flush();
  const std::string first = "[\"0\", \"3\", 4, 5, {\"lr\": 0.2}, {\"lr\": 0.24}]\n";
  const std::string second = "[\"1\", \"0\", 4, 10, {\"lr\": 0.2}, {\"lr\": 0.24}]\n";
  const std::string third = "[\"0\", \"2\", 4, 15, {\"lr\": 0.2}, {\"lr\": 0.24}]\n";
  EXPECT_EQ(content_of(directory / "pbt_global.txt"), first + second + third);
  EXPECT_EQ(content_of(directory / "pbt_policy_00001.txt"), first + second);
  EXPECT_EQ(content_of(directory / "pbt_policy_00000.txt"), third);
}

}  // namespace
}  // namespace cadre::tune
