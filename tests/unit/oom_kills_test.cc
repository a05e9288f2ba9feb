#include "engine/local/oom_kills.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/temporary_directory.h"

namespace cadre::engine::local {
namespace {

namespace fs = std::filesystem;
using test_support::TemporaryDirectory;
using test_support::write_bytes;

// The files of a machine whose process is in the cgroup "/jobs/7".
class OomKills : public ::testing::Test {
 protected:
  OomKills() {
    fs::create_directories(root / "proc/self");
    fs::create_directories(root / "sys/fs/cgroup/jobs/7");
    write_bytes(root / "proc/self/cgroup", "4:memory:/elsewhere\n0::/jobs/7\n");
    write_bytes(vmstat, "nr_free_pages 12\noom_kill 5\npgfault 3\n");
  }

  TemporaryDirectory root;
  fs::path vmstat = root / "proc/vmstat";
  fs::path events = root / "sys/fs/cgroup/jobs/7/memory.events";
};

TEST_F(OomKills, TheCountIsThatOfItsLine) {
  EXPECT_EQ(read_oom_kills(vmstat), 5U);
  write_bytes(events, "low 0\nhigh 0\nmax 9\noom 8\noom_kill 7\noom_group_kill 6\n");
  EXPECT_EQ(read_oom_kills(events), 7U);
}

TEST_F(OomKills, AFileWithoutTheLineOrNoFileHasNoCount) {
  EXPECT_EQ(read_oom_kills(root / "none"), std::nullopt);
  write_bytes(events, "low 0\nhigh 0\nmax 9\noom 8\n");
  EXPECT_EQ(read_oom_kills(events), std::nullopt);
}

TEST_F(OomKills, TheCgroupIsAskedBeforeTheMachine) {
  EXPECT_EQ(oom_counter_file(root.path()), vmstat);
  write_bytes(events, "oom_kill 7\n");
  EXPECT_EQ(oom_counter_file(root.path()), events);
}

TEST_F(OomKills, TheMachineIsAskedWhereTheCgroupDoesNotCount) {
  write_bytes(events, "oom 8\n");
  EXPECT_EQ(oom_counter_file(root.path()), vmstat);
  write_bytes(events, "oom_kill 7\n");
  write_bytes(root / "proc/self/cgroup", "4:memory:/jobs/7\n");  // version 1 only
  EXPECT_EQ(oom_counter_file(root.path()), vmstat);
}

TEST(OomKillsOfThisMachine, CanBeCounted) {
  if (!fs::exists("/proc/vmstat")) GTEST_SKIP() << "/proc is not there";
  EXPECT_TRUE(read_oom_kills(oom_counter_file()).has_value());
}

}  // namespace
}  // namespace cadre::engine::local
