#include "base/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

namespace cadre::base {
namespace {

// Returns true if a file that is opened after the streams `closed` were closed gets none of their numbers.
template <std::size_t size>
bool stays_above_streams(const std::array<int, size>& closed) {
  for (const int stream : closed) ::close(stream);
  open_closed_standard_streams();
  return ::open("/dev/null", O_RDONLY) > STDERR_FILENO && ::write(STDOUT_FILENO, "x", 1) == 1;
}

TEST(StandardStreams, ThatAreClosedAreNotGivenToOtherFiles) {
  const auto exit_code = [](const auto& closed) { return stays_above_streams(closed) ? 0 : 1; };
  EXPECT_EXIT(::_exit(exit_code(std::array{0, 1, 2})), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(::_exit(exit_code(std::array{1})), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(::_exit(exit_code(std::array{0, 2})), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cadre::base
