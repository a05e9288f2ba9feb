// Steps of an allocation, whose srun is a script.
#include "engine/cluster/slurm_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "engine/cluster/variables.h"
#include "support/temporary_directory.h"

namespace cadre::engine::cluster {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;
using test_support::TemporaryDirectory;

constexpr auto kDeadline = std::chrono::seconds(30);

class SlurmStepsTest : public ::testing::Test {
 protected:
  // Makes the script, which tells in the folder what has happened; `at_sigterm`: what it does then.
  void begin(const std::string& at_sigterm) {
    const fs::path srun = directory / "srun";
    std::ofstream(srun) << "#!/bin/sh\ncd " << directory.path().string() << "\ntrap '" << at_sigterm
                        << "; exit 143' TERM\n: >started\nwhile :; do sleep 0.02; done\n";
    fs::permissions(srun, fs::perms::owner_all);
    slurm::Variables own = own_variables();
    own["SLURM_JOB_ID"] = "7";
    ::setenv("PATH", (directory.path().string() + ":" + path).c_str(), 1);
    steps = std::make_unique<SlurmSteps>(std::move(own));
    steps->request({.id = 1}, {.command = {"agent"}});
  }
  ~SlurmStepsTest() override { ::setenv("PATH", path.c_str(), 1); }
  template <class Condition>
  bool until(const Condition& condition) {
    for (const auto deadline = steady_clock::now() + kDeadline; steady_clock::now() < deadline;) {
      for (const ProviderEvent& event : steps->take_events()) ended += std::holds_alternative<AgentEnded>(event);
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  bool until_there(const char* file) {
    return until([&] { return fs::exists(directory / file); });
  }

  TemporaryDirectory directory;
  const std::string path = ::getenv("PATH");
  std::unique_ptr<SlurmSteps> steps;
  int ended = 0;
};

TEST_F(SlurmStepsTest, AStepIsGivenBackOnceItsSrunHasEndedIt) {
  begin("sleep 0.3; : >cancelled");
  ASSERT_TRUE(until_there("started"));
  EXPECT_FALSE(steps->is_giving_back());
  steps->release(1);
  EXPECT_TRUE(steps->is_giving_back());
  ASSERT_TRUE(until([&] { return !steps->is_giving_back(); }));
  EXPECT_TRUE(fs::exists(directory / "cancelled"));
  EXPECT_EQ(ended, 1);
}

TEST_F(SlurmStepsTest, AnSrunThatEndsByItselfGivesNothingBack) {
  begin(":");
  ASSERT_TRUE(until_there("started"));
  ASSERT_EQ(steps->processes().size(), 1u);
  ::kill(static_cast<::pid_t>(steps->processes().front().pid), SIGKILL);
  ASSERT_TRUE(until([&] { return ended == 1; }));
  steps->release(1);
  EXPECT_FALSE(steps->is_giving_back());
}

}  // namespace
}  // namespace cadre::engine::cluster
