#include "resources/memory_usage.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace cadre::resources {
namespace {

TEST(MemoryUsage, TheMachineHasMoreThanThisProgramUses) {
  const auto usage = memory_usage();
  ASSERT_TRUE(usage);
  EXPECT_GT(usage->own_bytes, 0u);
  EXPECT_GT(usage->used_bytes, 0u);
  EXPECT_LT(usage->used_bytes, usage->total_bytes);
}

TEST(MemoryUsage, GrandchildrenCountAndTheDeadDoNot) {
  constexpr std::size_t size = std::size_t{64} << 20;
  int ready[2], end[2];
  ASSERT_EQ(::pipe(ready) | ::pipe(end), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(end[1]);
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      static char* const memory = new char[size];
      std::memset(memory, 1, size);
      [[maybe_unused]] const auto told = ::write(ready[1], memory, 1);
    }
    char byte = 0;
    [[maybe_unused]] const auto over = ::read(end[0], &byte, 1);
    if (grandchild != 0) ::waitpid(grandchild, nullptr, 0);
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_GE(resident_bytes_of_tree(child), size);
  ::close(end[1]);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(resident_bytes_of_tree(child), 0u);
  for (const int fd : {ready[0], ready[1], end[0]}) ::close(fd);
}

}  // namespace
}  // namespace cadre::resources
