// Jobs of a queue, whose commands are scripts.
#include "engine/cluster/slurm_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <variant>

#include "engine/cluster/variables.h"
#include "support/temporary_directory.h"

namespace cadre::engine::cluster {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;
using test_support::TemporaryDirectory;

constexpr auto kDeadline = std::chrono::seconds(30);

// Two jobs wait until they are cancelled, which takes until there is a file "go".
class SlurmJobsTest : public ::testing::Test {
 protected:
  SlurmJobsTest() {
    make_script("sbatch", "if [ \"$1\" = --version ]; then echo slurm 23.02.0; else cat >/dev/null; echo 12; fi\n");
    make_script("squeue",
                "for node in 0 1; do\n"
                "  [ -e cancelled-12_$node ] || echo \"12|$node|PENDING|Priority|N/A|N/A||cadre-x.1\"\n"
                "done\n");
    make_script("scancel",
                ": >cancelling\n"
                "until [ -e go ]; do sleep 0.02; done\n"
                "for job; do : >cancelled-$job; done\n");
    ::setenv("PATH", (directory.path().string() + ":" + path).c_str(), 1);
    jobs = std::make_unique<SlurmJobs>("x", own_variables());
    jobs->request({.id = 1, .nodes = 2}, {.command = {"agent"}});
  }
  ~SlurmJobsTest() override { ::setenv("PATH", path.c_str(), 1); }

  void make_script(const std::string& name, const std::string& lines) const {
    const fs::path script = directory / name;
    std::ofstream(script) << "#!/bin/sh\ncd " << directory.path().string() << "\n" << lines;
    fs::permissions(script, fs::perms::owner_all);
  }
  template <class Condition>
  bool until(const Condition& condition) {
    for (const auto deadline = steady_clock::now() + kDeadline; steady_clock::now() < deadline;) {
      for (const ProviderEvent& event : jobs->take_events()) queued += std::holds_alternative<Queued>(event);
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  bool is_there(const char* file) const { return fs::exists(directory / file); }

  TemporaryDirectory directory;
  const std::string path = ::getenv("PATH");
  std::unique_ptr<SlurmJobs> jobs;
  int queued = 0;
};

TEST_F(SlurmJobsTest, AJobThatIsGivenBackWhileAnotherOneIsCancelledIsCancelledToo) {
  ASSERT_TRUE(until([&] { return queued == 1; }));
  jobs->release(1, 0);
  ASSERT_TRUE(until([&] { return is_there("cancelling"); }));
  const std::size_t of_the_cancellation = jobs->fds().size();
  jobs->release(1, 1);
  ASSERT_TRUE(until([&] { return jobs->fds().size() > of_the_cancellation; }));   // the list is asked for
  ASSERT_TRUE(until([&] { return jobs->fds().size() == of_the_cancellation; }));  // and was looked at
  std::ofstream(directory / "go") << "";
  ASSERT_TRUE(until([&] { return !jobs->is_giving_back(); }));
  EXPECT_TRUE(is_there("cancelled-12_0"));
  EXPECT_TRUE(is_there("cancelled-12_1"));
}

TEST_F(SlurmJobsTest, ACancellationThatCannotBeStartedIsTriedAgainAfterAPauseAndKeepsNobodyBusyUntilThen) {
  ASSERT_TRUE(until([&] { return queued == 1; }));
  fs::remove(directory / "scancel");
  ::setenv("PATH", directory.path().c_str(), 1);  // without a scancel of this machine
  const auto before = steady_clock::now();
  jobs->release(1);
  ASSERT_TRUE(until([&] { return !jobs->fds().empty(); }));  // the list is asked for
  ASSERT_TRUE(until([&] { return jobs->fds().empty(); }));   // and says what is to be cancelled
  const auto next = jobs->next_look();
  ASSERT_TRUE(next.has_value());
  EXPECT_GE(*next, before + std::chrono::seconds(1));
  EXPECT_TRUE(jobs->is_giving_back());
  make_script("scancel", "for job; do : >cancelled-$job; done\n");
  ASSERT_TRUE(until([&] { return !jobs->is_giving_back(); }));
  EXPECT_TRUE(is_there("cancelled-12_0"));
  EXPECT_TRUE(is_there("cancelled-12_1"));
}

}  // namespace
}  // namespace cadre::engine::cluster
