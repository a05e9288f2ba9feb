#include "tune/loggers/pbt_log.h"

#include <gtest/gtest.h>

#include "support/temporary_directory.h"

namespace cadre::tune {
namespace {

using cadre::test_support::content_of;
using cadre::test_support::TemporaryDirectory;

Trial trial(TrialIndex index, std::string tag) {
  Trial made;
  made.index = index;
  made.id = "0000" + std::to_string(index);
  made.tag = std::move(tag);
  return made;
}

TEST(PbtLog, OnlyPopulationBasedTrainingLogsItsExploitsAndOnlyWhereItIsTold) {
  EXPECT_TRUE(AnyScheduler(PopulationBasedTraining()).held().traits().logs_exploits);
  EXPECT_FALSE(AnyScheduler(PopulationBasedTraining{.log_config = false}).held().traits().logs_exploits);
  EXPECT_FALSE(AnyScheduler(PopulationBasedTrainingReplay()).held().traits().logs_exploits);
  EXPECT_FALSE(AnyScheduler(FIFO()).held().traits().logs_exploits);
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
  exploit(0, 2, 15);  // trial 2 has no history, so trial 0's starts anew
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
