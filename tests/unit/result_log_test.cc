#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "base/directory.h"
#include "base/file.h"
#include "loggers/amendments.h"
#include "loggers/flat_row.h"
#include "loggers/progress_csv.h"
#include "loggers/result_log.h"
#include "support/event_file.h"
#include "support/temporary_directory.h"

namespace cadre::loggers {
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

// The expected contents are given by a stamp, as in a snapshot.
TEST(ResultLog, EveryCutAndEveryFlippedBitIsNoticedAndWhatCameLaterIsCutOff) {
  const TemporaryDirectory directory;
  ResultLog::Stamp stamp;
  {
    ResultLog files(directory.path());
    files.add({{"loss", 1}}, {}, 1000);
    files.add({{"loss", 2}, {"more", "x"}}, {}, 1001);
    files.add_error(1, "bad luck");
    files.flush();
    stamp = files.stamp();
    files.add({{"loss", 3}, {"more", "y"}}, {}, 1002);  // after the snapshot
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
      EXPECT_FALSE(ResultLog(directory.path()).resume(stamp)) << name << " cut at " << cut;
    }
    for (std::size_t bit = 0; bit < size * 8; ++bit) {
      std::string flipped = content;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      base::replace_file(directory / name, flipped);
      EXPECT_FALSE(ResultLog(directory.path()).resume(stamp)) << name << " bit " << bit;
    }
    for (std::size_t cut = size; cut <= content.size(); ++cut) {
      base::replace_file(directory / name, content.substr(0, cut));
      EXPECT_TRUE(ResultLog(directory.path()).resume(stamp)) << name << " cut at " << cut;
      EXPECT_EQ(content_of(directory / name), content.substr(0, size));
    }
  }
}

TEST(ResultLog, ResumedTheyGoOn) {
  const TemporaryDirectory directory;
  {
    ResultLog files(directory.path());
    files.add({{"loss", 1}}, {}, 1000);
    files.add_error(1, "bad luck");
    files.flush();
  }
  ResultLog files(directory.path());
  files.resume();
  files.add({{"loss", 2}}, {}, 1001);
  files.add_error(2, "again");
  files.flush();
  EXPECT_EQ(content_of(directory / "progress.csv"), "loss\n1\n2\n");
  EXPECT_EQ(std::ranges::count(content_of(directory / "result.json"), '\n'), 2);
  EXPECT_EQ(test_support::event_values(content_of(directory / "events.out.tfevents.1000.localhost")).size(), 2u);
  EXPECT_EQ(content_of(directory / "error.txt"), "Attempt 1: bad luck\nAttempt 2: again\n");
}

TEST(ResultLog, AResultIsALineOfJsonWithItsConfigAndARowWithoutIt) {
  const TemporaryDirectory directory;
  ResultLog files(directory.path());
  files.add({{"loss", 0.5}, {"eval", {{"accuracy", 1}}}}, {{"lr", 0.1}}, 1000);
  files.flush();
  EXPECT_EQ(content_of(directory / "result.json"),
            "{\"loss\": 0.5, \"eval\": {\"accuracy\": 1}, \"config\": {\"lr\": 0.1}}\n");
  EXPECT_EQ(content_of(directory / "progress.csv"), "loss,eval/accuracy\n0.5,1\n");
}

TEST(ResultLog, ObjectsOfAHostAreTheirPlainValueOrTheirText) {
  const Value net{{"$python", Value(Reference{"object", "id"})}, {"repr", Value("Net(3)")}};
  const Value mode{{"$python", Value("a pickle")}, {"repr", Value("<Mode.SLOW: 'slow'>")}, {"value", Value("slow")}};
  const TemporaryDirectory directory;
  ResultLog files(directory.path());
  const Config config{{"nets", list(net, 1)}, {"nested", {{"mode", mode}}}};
  files.write_params(config);
  files.add({{"loss", 0.5}}, config, 1000);
  files.flush();
  EXPECT_EQ(content_of(directory / "result.json"),
            "{\"loss\": 0.5, \"config\": {\"nets\": [\"Net(3)\", 1], \"nested\": {\"mode\": \"slow\"}}}\n");
  EXPECT_EQ(content_of(directory / "params.json"),
            "{\n  \"nested\": {\n    \"mode\": \"slow\"\n  },\n  \"nets\": [\n    \"Net(3)\",\n    1\n  ]\n}");
}

TEST(ResultLog, OnlyTheFilesThatAreWantedAreThere) {
  const std::string event_file = "events.out.tfevents.1000.localhost";
  const std::map<std::string, Loggers> only{{"progress.csv", {.json = false, .tensorboard = false}},
                                            {"result.json", {.csv = false, .tensorboard = false}},
                                            {event_file, {.csv = false, .json = false}}};
  for (const auto& [name, loggers] : only) {
    const TemporaryDirectory directory;
    ResultLog files(directory.path(), loggers);
    files.write_params({{"lr", 0.1}});
    files.add({{"loss", 0.5}}, {}, 1000);
    files.add_error(1, "bad luck");
    files.flush();
    EXPECT_THAT(base::list_directory(directory.path()),
                ::testing::UnorderedElementsAre("params.json", "error.txt", name));
  }
}

// ---- Values that come after their result

TEST(Amended, ADictionaryGetsTheEntriesOfBothAndAnotherValueStays) {
  const Dict more{{"validation", {{"accuracy", 0.5}, {"loss", 2}}}};
  const auto with = [&](const Dict& row) { return to_json(amended(row, more)); };
  EXPECT_EQ(with({{"loss", 1}}), R"({"loss": 1, "validation": {"accuracy": 0.5, "loss": 2}})");
  EXPECT_EQ(with({{"validation", {{"loss", 3}, {"f1", 4}}}}),
            R"({"validation": {"loss": 2, "f1": 4, "accuracy": 0.5}})");
  EXPECT_EQ(with({{"validation", true}}), R"({"validation": true, "validation/accuracy": 0.5, "validation/loss": 2})");
}

TEST(Amended, LinesAreChangedByTheirNumberAndOthersStayAsTheyAre) {
  const std::string lines = "{\"a\": 1.50}\n{\"a\": NaN}\n{\"a\": 3}\n";
  EXPECT_EQ(amended_lines(lines, {}), lines);
  EXPECT_EQ(amended_lines(lines, {{0, {{"b", 1}}}}), "{\"a\": 1.5, \"b\": 1}\n{\"a\": NaN}\n{\"a\": 3}\n");
  EXPECT_EQ(amended_lines(lines, {{1, {{"b", 1}}}, {2, {{"b", 2}}}, {3, {{"b", 3}}}}),
            "{\"a\": 1.50}\n{\"a\": NaN, \"b\": 1}\n{\"a\": 3, \"b\": 2}\n");
}

TEST(ResultLog, ValuesThatComeLaterAreInTheRowOfTheirResultAndAtItsStep) {
  const TemporaryDirectory directory;
  ResultLog files(directory.path());
  files.add({{"loss", 3}, {"text", "two\nlines, \"quoted\""}, {"training_iteration", 1}}, {{"lr", 0.1}}, 1000);
  files.flush();
  files.add({{"loss", 2}, {"training_iteration", 2}}, {}, 1001);
  files.amend(0, {{"validation", {{"accuracy", 0.5}}}}, {{"training_iteration", 1}}, 1002);
  files.amend(0, {{"validation", {{"f1", 0.25}}}}, {{"training_iteration", 1}}, 1003);
  files.flush();
  files.add({{"loss", 1}, {"training_iteration", 3}}, {}, 1004);
  files.flush();
  EXPECT_EQ(content_of(directory / "result.json"),
            R"({"loss": 3, "text": "two\nlines, \"quoted\"", "training_iteration": 1, "config": {"lr": 0.1}, )"
            R"("validation": {"accuracy": 0.5, "f1": 0.25}})"
            "\n"
            R"({"loss": 2, "training_iteration": 2, "config": {}})"
            "\n"
            R"({"loss": 1, "training_iteration": 3, "config": {}})"
            "\n");
  EXPECT_EQ(content_of(directory / "progress.csv"),
            "loss,text,training_iteration,validation/accuracy,validation/f1\n"
            "3,\"two\nlines, \"\"quoted\"\"\",1,0.5,0.25\n2,,2,,\n1,,3,,\n");
  std::vector<std::pair<std::int64_t, double>> points;
  for (const auto& value : test_support::event_values(content_of(directory / "events.out.tfevents.1000.localhost")))
    if (value.tag == "ray/tune/validation/accuracy") points.emplace_back(value.step, value.wall_time);
  EXPECT_THAT(points, ::testing::ElementsAre(std::pair(1, 1002.0)));
}

TEST(ResultLog, LargeFilesAreNotWrittenAnewForEachValueThatComesLater) {
  const TemporaryDirectory directory;
  ResultLog files(directory.path(), {.tensorboard = false});
  const std::size_t rows = 2 * ResultLog::kSmallFile / 1000;
  for (std::size_t i = 0; i < rows; ++i) files.add({{"text", std::string(1000, 'x')}}, {}, 1000);
  files.flush();
  const auto times = [&](const std::string& name) {
    const std::string content = content_of(directory / name);
    std::size_t count = 0;
    for (std::size_t at = content.find("0.123"); at != content.npos; at = content.find("0.123", at + 1)) ++count;
    return count;
  };
  const auto amend = [&](std::size_t number) {
    files.amend(number, {{"validation", {{"accuracy", 0.123}}}}, {}, 1001);
    files.flush();
  };
  for (std::size_t i = 0; i < 4; ++i) amend(i);
  EXPECT_EQ(times("result.json"), 1) << "the first one, as by then the file was never written anew";
  EXPECT_EQ(times("progress.csv"), 1);
  for (std::size_t i = 0; i < rows / 4; ++i) files.add({{"text", std::string(1000, 'x')}}, {}, 1000);
  files.flush();
  EXPECT_EQ(times("result.json"), 4) << "the file has grown";
  EXPECT_EQ(times("progress.csv"), 4);
  amend(rows);
  files.complete();
  EXPECT_EQ(times("result.json"), 5);
  EXPECT_EQ(times("progress.csv"), 5);
}

}  // namespace
}  // namespace cadre::loggers
