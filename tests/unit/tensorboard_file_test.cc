#include "loggers/tensorboard_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/directory.h"
#include "base/file.h"
#include "loggers/flat_row.h"
#include "loggers/tensorboard_events.h"
#include "support/event_file.h"
#include "support/temporary_directory.h"
#include "tune/loggers/trial_rows.h"

namespace cadre::loggers {
namespace {

using test_support::content_of;
using test_support::event_values;
using test_support::EventValue;
using test_support::TemporaryDirectory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kName = "events.out.tfevents.1000.host";
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Dict row(std::int64_t iteration, Dict metrics) {
  metrics.emplace_back("training_iteration", iteration);
  metrics.emplace_back("hostname", "host");
  return metrics;
}

// Returns texts "tag@step=value", with the kind in place of the value of a histogram.
std::vector<std::string> shown(const std::string& file) {
  std::vector<std::string> texts;
  for (const EventValue& value : event_values(file)) {
    std::string text = value.tag + "@" + std::to_string(value.step);
    if (value.kind == 2) text += "=" + std::to_string(value.scalar);
    texts.push_back(value.kind == 5 ? text + " histogram" : text);
  }
  return texts;
}

std::vector<std::string> shown(const TemporaryDirectory& directory, const std::string& name = kName) {
  return shown(content_of(directory / name));
}

tune::Trial ended_trial(Dict sampled, Config config, Metrics last_result,
                        tune::TrialStatus status = tune::TrialStatus::terminated) {
  tune::Trial trial;
  trial.id = "00003";
  trial.status = status;
  trial.sampled = std::move(sampled);
  trial.config = std::move(config);
  trial.last_result = std::move(last_result);
  return trial;
}

void end(TensorBoardFile& file, const tune::Trial& trial, double time) {
  const tune::LogEnd ended{.status = trial.status, .config = trial.config, .last_result = trial.last_result};
  file.end(tune::session_of(trial, ended, time), flatten(tune::last_row_of(ended)));
}

TEST(TensorBoardFile, NumbersAndBoolsAreScalarsUnderRaysTags) {
  const TemporaryDirectory directory;
  TensorBoardFile file(directory.path());
  file.add(row(7, {{"loss", 0.5},
                   {"epoch", 3},
                   {"done", true},
                   {"words", "x"},
                   {"none", {}},
                   {"nan", std::nan("")},
                   {"up", kInfinity},
                   {"config", 1},
                   {"pid", 2},
                   {"timestamp", 3},
                   {"time_total_s", 4},
                   {"eval/loss", 0.25}}),
           1000.5);
  file.flush();
  EXPECT_THAT(shown(directory),
              ElementsAre("ray/tune/loss@7=0.500000", "ray/tune/epoch@7=3.000000", "ray/tune/done@7=1.000000",
                          "ray/tune/up@7=inf", "ray/tune/eval/loss@7=0.250000"));
  EXPECT_EQ(event_values(content_of(directory / kName)).front().wall_time, 1000.5);
}

TEST(TensorBoardFile, AStepIsTimestepsTotalWhereThereIsOne) {
  const TemporaryDirectory directory;
  TensorBoardFile file(directory.path());
  file.add(row(1, {{"loss", 1}, {"timesteps_total", std::int64_t{1} << 40}}), 1000);
  file.add(row(2, {{"loss", 1}, {"timesteps_total", 0}}), 1000);
  file.add(row(-3, {{"loss", 1}}), 1000);
  file.add({{"loss", 1}}, 1000);
  file.flush();
  std::vector<std::int64_t> steps;
  for (const EventValue& value : event_values(content_of(directory / kName)))
    if (value.tag == "ray/tune/loss") steps.push_back(value.step);
  EXPECT_THAT(steps, ElementsAre(std::int64_t{1} << 40, 2, -3, 0));
}

TEST(TensorBoardFile, AListOfNumbersIsAHistogramOfItsFiniteOnes) {
  const TemporaryDirectory directory;
  TensorBoardFile file(directory.path());
  file.add(row(1, {{"weights", list(1, 2.5, 4, 4, kInfinity, std::nan(""))},
                   {"one", list(3)},
                   {"wide", list(-1.7e308, 1.7e308)},
                   {"empty", List{}},
                   {"nothing", list(std::nan(""))},
                   {"mixed", list(1, "a")}}),
           1000);
  file.flush();
  EXPECT_THAT(shown(directory),
              ElementsAre("ray/tune/weights@1 histogram", "ray/tune/one@1 histogram", "ray/tune/wide@1 histogram"));
  for (const EventValue& value : event_values(content_of(directory / kName))) {
    std::map<unsigned, double> numbers;
    std::map<unsigned, std::vector<double>> packed;
    std::string_view message = value.message;
    while (const auto field = protobuf::take_field(message)) {
      if (field->number <= 5) numbers[field->number] = std::bit_cast<double>(field->value);
      for (std::size_t at = 0; at < field->bytes.size(); at += 8)
        packed[field->number].push_back(std::bit_cast<double>(test_support::little_endian(field->bytes.substr(at, 8))));
    }
    const std::vector<double>& limits = packed[6];
    const std::vector<double>& counts = packed[7];
    EXPECT_EQ(limits.size(), counts.size());
    EXPECT_TRUE(std::ranges::all_of(limits, [](double limit) { return std::isfinite(limit); }));
    EXPECT_TRUE(std::ranges::is_sorted(limits));
    EXPECT_EQ(limits.back(), numbers[2]);
    const double counted = std::reduce(counts.begin(), counts.end());
    EXPECT_EQ(counted, numbers[3]) << value.tag;  // every number is in a bucket
    if (value.tag != "ray/tune/weights") continue;
    EXPECT_EQ(numbers[1], 1);
    EXPECT_EQ(numbers[2], 4);
    EXPECT_EQ(numbers[3], 4);
    EXPECT_EQ(numbers[4], 11.5);
    EXPECT_EQ(numbers[5], 1 + 6.25 + 16 + 16);
  }
}

TEST(TensorBoardFile, AMetricThatChangesItsTypeGoesOnUnderAnotherTagAlsoAfterAResume) {
  const TemporaryDirectory directory;
  TensorBoardFile::Stamp stamp;
  {
    TensorBoardFile file(directory.path());
    file.add(row(1, {{"a", 1}, {"b", list(1)}}), 1000);
    file.add(row(2, {{"a", "text"}, {"b", {}}}), 1000);
    file.flush();
    stamp = file.stamp();
  }
  TensorBoardFile file(directory.path());
  ASSERT_TRUE(file.resume(stamp));
  file.add(row(3, {{"a", list(1)}, {"b", 2}}), 1000);
  file.add(row(4, {{"a", 4}, {"b", list(4)}}), 1000);
  file.flush();
  EXPECT_THAT(shown(directory),
              ElementsAre("ray/tune/a@1=1.000000", "ray/tune/b@1 histogram", "ray/tune/a/histogram@3 histogram",
                          "ray/tune/b/scalar@3=2.000000", "ray/tune/a@4=4.000000", "ray/tune/b@4 histogram"));
}

TEST(TensorBoardFile, ATagIsUtf8WhateverTheMetricsName) {
  const TemporaryDirectory directory;
  TensorBoardFile file(directory.path());
  const std::string zero("a\0b", 3);
  file.add(row(1, {{"caf\xc3\xa9", 1}, {"\xff\xc3", 2}, {zero, 3}, {"../$(x)\n", 4}, {std::string(300, 'x'), 5}}),
           1000);
  file.flush();
  EXPECT_THAT(shown(directory),
              ElementsAre("ray/tune/caf\xc3\xa9@1=1.000000", "ray/tune/\xef\xbf\xbd\xef\xbf\xbd@1=2.000000",
                          "ray/tune/" + zero + "@1=3.000000", "ray/tune/../$(x)\n@1=4.000000",
                          "ray/tune/" + std::string(300, 'x') + "@1=5.000000"));
}

TEST(TensorBoardFile, TenThousandMetricsAreOneRecord) {
  const TemporaryDirectory directory;
  TensorBoardFile file(directory.path());
  Dict metrics;
  for (int i = 0; i < 10'000; ++i) metrics.emplace_back("metric " + std::to_string(i), i);
  file.add(row(1, metrics), 1000);
  file.flush();
  EXPECT_THAT(test_support::records_of(content_of(directory / kName)), SizeIs(2));
  EXPECT_EQ(shown(directory).back(), "ray/tune/metric 9999@1=9999.000000");
}

TEST(TensorBoardFile, AResultWithoutNumbersIsNoRecord) {
  const TemporaryDirectory directory;
  TensorBoardFile file(directory.path());
  file.add(row(1, {{"words", "x"}}), 1000);
  file.flush();
  EXPECT_THAT(test_support::records_of(content_of(directory / kName)), SizeIs(1));
}

// Data that a kill leaves after the last snapshot is cut off, and data missing from before it is detected.
TEST(TensorBoardFile, TornAtAnyByteItGoesOnWithEveryValueOnce) {
  const TemporaryDirectory directory;
  const auto add = [](TensorBoardFile& file, std::int64_t iteration) {
    file.add(row(iteration, {{"loss", iteration}}), 1000 + static_cast<double>(iteration));
    file.flush();
  };
  TensorBoardFile::Stamp stamp;
  {
    TensorBoardFile file(directory.path());
    EXPECT_EQ(file.stamp().name, "");
    file.add(row(0, {{"loss", 0}}), 1000);
    add(file, 1);
    stamp = file.stamp();
    add(file, 2);
    add(file, 3);
  }
  const std::string whole = content_of(directory / kName);
  const auto size = static_cast<std::size_t>(stamp.content.size);
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    base::replace_file(directory / kName, whole.substr(0, cut));
    TensorBoardFile file(directory.path());
    ASSERT_EQ(file.resume(stamp), cut >= size) << cut;
    if (cut < size) continue;
    add(file, 2);
    add(file, 3);
    ASSERT_EQ(content_of(directory / kName), whole) << cut;
  }
}

TEST(TensorBoardFile, WrittenAnewItReplacesWhatAnEarlierControllerLeftAndNothingElse) {
  const TemporaryDirectory directory;
  const std::string of_user = std::string("events.out.tfevents.900.host");
  base::replace_file(directory / of_user, "the training function's own");
  for (const double time : {999.0, 1000.0}) {
    TensorBoardFile file(directory.path());
    file.add(row(1, {{"loss", 1}}), time);
    file.flush();
  }
  EXPECT_THAT(base::list_directory(directory.path()), ElementsAre(kName, of_user));
  EXPECT_THAT(shown(directory), ElementsAre("ray/tune/loss@1=1.000000"));
}

TEST(TensorBoardFile, AnEndedTrialIsASessionWithTheConfigThatItHadLast) {
  const TemporaryDirectory directory;
  TensorBoardFile file(directory.path());
  file.add(row(1, {{"loss", 1}}), 1000);
  const tune::Trial trial =
      ended_trial({{"lr", 0.1}, {"net/act", "relu"}, {"flag", true}, {"bound", kInfinity}},
                  {{"lr", 0.2}, {"net", {{"act", "tanh"}}}, {"flag", false}, {"bound", kInfinity}},
                  {{"loss", 1}, {"pid", 1}, {"words", "x"}});
  end(file, trial, 1005);
  end(file, trial, 1006);  // again, as after a full disk
  file.flush();
  const std::vector<EventValue> values = event_values(content_of(directory / kName));
  ASSERT_THAT(values, SizeIs(4));
  EXPECT_EQ(values[1].tag, "_hparams_/experiment");
  EXPECT_EQ(values[2].tag, "_hparams_/session_start_info");
  EXPECT_EQ(values[3].tag, "_hparams_/session_end_info");
  for (const char* part : {"hparams", "lr", "net/act", "flag", "bound", "ray/tune/loss", "ray/tune/done"})
    EXPECT_THAT(values[1].message, HasSubstr(part));
  EXPECT_THAT(values[1].message, ::testing::Not(HasSubstr("ray/tune/pid")));
  for (const char* part : {"tanh", "Infinity", "00003"}) EXPECT_THAT(values[2].message, HasSubstr(part));
  EXPECT_THAT(values[2].message, ::testing::Not(HasSubstr("relu")));
}

TEST(TensorBoardFile, WithoutResultsOrSampledParametersThereIsNoSession) {
  const TemporaryDirectory directory;
  TensorBoardFile silent(directory.path());
  end(silent, ended_trial({{"lr", 1}}, {{"lr", 1}}, {}), 1000);
  silent.flush();
  EXPECT_THAT(base::list_directory(directory.path()), IsEmpty());
  TensorBoardFile constant(directory.path());
  constant.add(row(1, {{"loss", 1}}), 1000);
  end(constant, ended_trial({}, {{"lr", 1}}, {{"loss", 1}}), 1001);
  constant.flush();
  EXPECT_THAT(shown(directory), SizeIs(1));
}

TEST(TensorBoardFile, ATrialThatIsTakenUpAgainLosesItsSessionUntilItsNextEnd) {
  const TemporaryDirectory directory;
  const std::string failure = "\b\2";  // the tag of the field status, and its value
  const std::string success = "\b\1";
  {
    TensorBoardFile file(directory.path());
    file.add(row(1, {{"loss", 1}}), 1000);
    end(file, ended_trial({{"lr", 1}}, {{"lr", 1}}, {{"loss", 1}}, tune::TrialStatus::error), 1001);
    file.flush();
    EXPECT_THAT(event_values(content_of(directory / kName)).back().message, HasSubstr(failure));
  }
  TensorBoardFile file(directory.path());
  file.resume();
  EXPECT_THAT(shown(directory), ElementsAre("ray/tune/loss@1=1.000000"));
  file.add(row(2, {{"loss", 2}}), 1002);
  end(file, ended_trial({{"lr", 1}}, {{"lr", 1}}, {{"loss", 2}}), 1003);
  file.flush();
  EXPECT_THAT(shown(directory),
              ElementsAre("ray/tune/loss@1=1.000000", "ray/tune/loss@2=2.000000", "_hparams_/experiment@0",
                          "_hparams_/session_start_info@0", "_hparams_/session_end_info@0"));
  EXPECT_THAT(event_values(content_of(directory / kName)).back().message, HasSubstr(success));
}

}  // namespace
}  // namespace cadre::loggers
