#include "tune/schedulers/policy_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdlib>

#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::tune {
namespace {

using cadre::test_support::message_of;
using cadre::test_support::TemporaryDirectory;
using cadre::test_support::write_bytes;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

std::string fault_of(const std::string& text) {
  return message_of<InvalidArgument>([&] { parse_policy(text, "the file"); });
}

// A policy file written by Ray Tune 2.60.
constexpr const char* kOfRayTune =
    R"(["2_lr=0.0300", "0_lr=0.1000", 4, 5, {"lr": 0.1, "layers": [1, 2], "act": "relu"}, {"lr": 0.12, "layers": [1, 2], "act": "tanh"}])"
    "\n"
    R"(["1_lr=0.5000", "2_lr=0.0300", 9, 10, {"lr": 0.12, "layers": [1, 2], "act": "tanh"}, {"lr": 1e-05, "layers": [1, 2], "act": "tanh"}])"
    "\n";

TEST(PolicyFile, EachLineIsAChangeAtTheDonorsIteration) {
  const PolicySchedule schedule = parse_policy(kOfRayTune, "the file");
  EXPECT_EQ(schedule.initial_config, (Config{{"lr", 0.1}, {"layers", list(1, 2)}, {"act", "relu"}}));
  ASSERT_EQ(schedule.changes.size(), 2u);
  EXPECT_EQ(schedule.changes[0], (PolicySchedule::Change{5, {{"lr", 0.12}, {"layers", list(1, 2)}, {"act", "tanh"}}}));
  EXPECT_EQ(schedule.changes[1], (PolicySchedule::Change{10, {{"lr", 1e-5}, {"layers", list(1, 2)}, {"act", "tanh"}}}));
}

// If a donor has no policy file, Ray Tune leaves the trial's older lines above the new one.
TEST(PolicyFile, LinesThatALaterExploitMadeStaleDoNotCount) {
  const PolicySchedule schedule = parse_policy(R"(["0", "7", 2, 2, {"x": 7}, {"x": 0}]
["1", "0", 4, 4, {"x": 0}, {"x": 1}]
["1", "2", 8, 9, {"x": 2}, {"x": 3}])",
                                               "the file");
  EXPECT_EQ(schedule, (PolicySchedule{{{"x", 2}}, {{9, {{"x", 3}}}}}));
}

TEST(PolicyFile, TheDonorsOfTheDonorsAreThePast) {
  const PolicySchedule schedule = parse_policy(R"(["5", "4", 1, 1, {"x": 0}, {"x": 1}]
["3", "2", 2, 2, {"x": 10}, {"x": 11}]
["2", "3", 3, 4, {"x": 11}, {"x": 12}]
["1", "2", 5, 6, {"x": 12}, {"x": 13}]
["0", "1", 7, 8, {"x": 13}, {"x": 14}]
)",
                                               "the file");
  EXPECT_EQ(schedule.initial_config, (Config{{"x", 10}}));
  ASSERT_EQ(schedule.changes.size(), 4u);
  EXPECT_EQ(schedule.changes[0].change_at, 2);
  EXPECT_EQ(schedule.changes[3], (PolicySchedule::Change{8, {{"x", 14}}}));
}

TEST(PolicyFile, NumbersThatPythonWritesAreRead) {
  const PolicySchedule schedule = parse_policy(
      "[\"0\", \"1\", 0, 0, {\"a\": NaN, \"b\": -Infinity, \"c\": 1e-05, \"d\": 9007199254740993}, {}]\r\n",
      "the file");
  EXPECT_TRUE(std::isnan(schedule.initial_config.get<double>("a")));
  EXPECT_EQ(schedule.initial_config.get<double>("b"), -INFINITY);
  EXPECT_EQ(schedule.initial_config.get<double>("c"), 1e-5);
  EXPECT_EQ(schedule.initial_config.get<std::int64_t>("d"), 9007199254740993);
}

TEST(PolicyFile, AFileWithoutLinesIsAScheduleWithoutAConfig) {
  EXPECT_EQ(parse_policy("", "the file"), PolicySchedule());
}

TEST(PolicyFile, EveryLineThatIsNoneIsNamedWithWhatIsWrong) {
  const std::string fault = fault_of(R"(["0", "1", 4, 5, {"lr": 0.1}, {"lr": 0.2}]
["0", "1", 4, 5, {"lr": 0.1}
{"lr": 0.1}
[0, "1", 4, 5, {}, {}]

["0", "1", 4, 5.5, {}, {}]
["0", "1", 4, 5, {}, null]
["0", "1", null, 5, {}, {}])");
  EXPECT_THAT(fault, StartsWith("the file is no policy file of Population Based Training:\n  line 2: "));
  EXPECT_THAT(fault, HasSubstr("\n  line 3: it is {\"lr\": 0.1} and no list of 6 elements"));
  EXPECT_THAT(fault, HasSubstr("\n  line 4: element 1, the target's tag, is 0 and no text"));
  EXPECT_THAT(fault, HasSubstr("\n  line 5: "));
  EXPECT_THAT(fault, HasSubstr("\n  line 6: element 4, the donor's iteration, is 5.5 and no integer"));
  EXPECT_THAT(fault, HasSubstr("\n  line 7: element 6, the new config, is null and no dictionary"));
  EXPECT_THAT(fault, HasSubstr("\n  line 8: element 3, the target's iteration, is null and no integer"));
  EXPECT_THAT(fault, Not(HasSubstr("line 1:")));
}

TEST(PolicyFile, AMessageNamesTheFirstTenLines) {
  std::string text;
  for (int i = 0; i < 25; ++i) text += std::string(1000, '[') + "\n";
  const std::string fault = fault_of(text);
  EXPECT_THAT(fault,
              AllOf(HasSubstr("\n  line 10: "), Not(HasSubstr("\n  line 11: ")), HasSubstr("and 15 more lines")));
}

TEST(PolicyFile, AFileThatCannotBeReadIsNamed) {
  const TemporaryDirectory directory;
  const auto fault = [&](const std::string& name) {
    return message_of<InvalidArgument>([&] { read_policy_file(directory / name); });
  };
  EXPECT_THAT(fault("missing.txt"), AllOf(HasSubstr((directory / "missing.txt").string()), HasSubstr("No such file")));
  EXPECT_THAT(fault("."), HasSubstr("it is no file"));
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(fault("pipe"), HasSubstr("it is no file")) << "reading it would wait for ever";
  write_bytes(directory / "large", "");
  std::filesystem::resize_file(directory / "large", (64u << 20) + 1);
  EXPECT_THAT(fault("large"), HasSubstr("larger than 64 MiB"));
  write_bytes(directory / "bad.txt", "x");
  EXPECT_THAT(fault("bad.txt"), AllOf(StartsWith((directory / "bad.txt").string()), HasSubstr("line 1:")));
}

TEST(PolicyFile, ATildeIsTheHomeDirectory) {
  const TemporaryDirectory directory;
  write_bytes(directory / "policy.txt", kOfRayTune);
  const char* home = std::getenv("HOME");
  const std::string before = home == nullptr ? "" : home;
  ::setenv("HOME", directory.path().c_str(), 1);
  EXPECT_EQ(read_policy_file("~/policy.txt").changes.size(), 2u);
  ::unsetenv("HOME");
  EXPECT_THAT(message_of<InvalidArgument>([] { read_policy_file("~/policy.txt"); }), HasSubstr("no HOME"));
  if (home != nullptr) ::setenv("HOME", before.c_str(), 1);
}

TEST(PolicyFile, AChangeKeepsWhatTheScheduleNeverHadAndDropsWhatItHasNoMore) {
  const PolicySchedule schedule{{{"lr", 0.1}, {"momentum", 0.9}}, {{5, {{"lr", 0.2}, {"beta", 1}}}}};
  const Config present{{"data", "here"}, {"lr", 0.1}, {"momentum", 0.9}};
  EXPECT_EQ(changed_config(present, schedule, schedule.changes[0]),
            (Config{{"data", "here"}, {"lr", 0.2}, {"beta", 1}}));
  EXPECT_THAT(changed_config({}, schedule, {5, {}}), IsEmpty());
}

}  // namespace
}  // namespace cadre::tune
