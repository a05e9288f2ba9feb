#include "resources/control_group.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temporary_directory.h"

namespace cadre::resources {
namespace {

using cadre::test_support::TemporaryDirectory;

class ControlGroup : public ::testing::Test {
 protected:
  void write(const std::filesystem::path& file, const std::string& text) {
    std::filesystem::create_directories((directory_.path() / file).parent_path());
    std::ofstream(directory_.path() / file) << text;
  }
  GroupLimits limits() const { return group_limits(directory_ / "groups", directory_ / "root"); }

 private:
  TemporaryDirectory directory_;
};

TEST_F(ControlGroup, TheLowestLimitOfAllGroupsAboveTheProcessCounts) {
  write("groups", "4:memory:/other\n0::/slice/job/step\n");
  write("root/slice/cpu.max", "150000 100000\n");
  write("root/slice/memory.max", "4000\n");
  write("root/slice/memory.current", "3500\n");
  write("root/slice/memory.stat", "anon 2000\ninactive_file 1000\nactive_file 500\n");
  write("root/slice/job/cpu.max", "max 100000\n");
  write("root/slice/job/memory.max", "max\n");
  write("root/slice/job/memory.current", "3500\n");
  write("root/slice/job/step/cpu.max", "400000 100000\n");
  write("root/slice/job/step/memory.max", "5000\n");
  write("root/slice/job/step/memory.current", "3000\n");
  EXPECT_EQ(limits().cpus, 1.5);
  ASSERT_TRUE(limits().memory);
  EXPECT_EQ(limits().memory->limit_bytes, 4000u);
  EXPECT_EQ(limits().memory->used_bytes, 2500u);
  write("root/slice/job/step/memory.max", "3500\n");
  EXPECT_EQ(limits().memory->limit_bytes, 3500u);
  EXPECT_EQ(limits().memory->used_bytes, 3000u);
}

TEST_F(ControlGroup, AContainerHasTheLimitsOfItsRoot) {
  write("root/cpu.max", "200000 100000\n");
  write("root/memory.max", "4000\n");
  write("root/memory.current", "100\n");
  for (const char* path : {"/", "/docker/not_seen_here", "/../../elsewhere"}) {
    write("groups", std::string("0::") + path + "\n");
    EXPECT_EQ(limits().cpus, 2.0) << path;
    ASSERT_TRUE(limits().memory) << path;
    EXPECT_EQ(limits().memory->limit_bytes, 4000u) << path;
  }
}

TEST_F(ControlGroup, WithoutGroupsOfVersion2ThereAreNoLimits) {
  write("root/cpu.max", "200000 100000\n");
  EXPECT_FALSE(limits().cpus);
  write("groups", "4:memory:/job\n1:cpu:/job\n");
  EXPECT_FALSE(limits().cpus);
  EXPECT_FALSE(limits().memory);
}

TEST_F(ControlGroup, WhatIsWrittenOtherwiseIsNoLimit) {
  write("groups", "0::/\n");
  write("root/cpu.max", "200000\n");
  write("root/memory.max", "");
  write("root/memory.current", "100\n");
  EXPECT_FALSE(limits().cpus);
  EXPECT_FALSE(limits().memory);
}

}  // namespace
}  // namespace cadre::resources
