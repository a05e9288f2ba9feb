#include "data/side_by_side.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/message_of.h"

namespace cadre::data {
namespace {

using test_support::message_of;

TEST(SideBySide, MakesEveryCallOnce) {
  std::vector<std::atomic<int>> calls(1000);
  side_by_side(calls.size(), [&](std::size_t number) { ++calls[number]; });
  for (const auto& count : calls) EXPECT_EQ(count, 1);
  side_by_side(0, [](std::size_t) { FAIL(); });
}

// Number 9 fails, then 5, then those above 9, all of which have begun by then.
TEST(SideBySide, ThrowsWhatTheLowestNumberHasThrown) {
  for (int round = 0; round < 50; ++round) {
    std::latch all_have_begun(16);
    std::latch nine_has_failed(1);
    std::latch five_has_failed(1);
    EXPECT_EQ(message_of<std::runtime_error>([&] {
                side_by_side(16, [&](std::size_t number) {
                  all_have_begun.arrive_and_wait();
                  if (number == 5) nine_has_failed.wait();
                  if (number > 9) five_has_failed.wait();
                  if (number == 9) nine_has_failed.count_down();
                  if (number == 5) five_has_failed.count_down();
                  if (number == 5 || number >= 9) throw std::runtime_error(std::to_string(number));
                });
              }),
              "5");
  }
}

}  // namespace
}  // namespace cadre::data
