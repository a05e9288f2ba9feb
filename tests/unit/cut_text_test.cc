#include "base/cut_text.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <iterator>
#include <string>

namespace cadre::base {
namespace {

const std::string kText = "a\u00e9\u20ac\U0001f600z";  // characters of 1, 2, 3, 4 and 1 bytes

TEST(CutText, TheBeginningHasWholeCharacters) {
  const std::size_t kept[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
  for (std::size_t most = 0; most < std::size(kept); ++most)
    EXPECT_EQ(first_bytes(kText, most), kText.substr(0, kept[most])) << most;
}

TEST(CutText, TheEndHasWholeCharacters) {
  const std::size_t kept[] = {0, 1, 1, 1, 1, 5, 5, 5, 8, 8, 10, 11, 11};
  for (std::size_t most = 0; most < std::size(kept); ++most)
    EXPECT_EQ(last_bytes(kText, most), kText.substr(kText.size() - kept[most])) << most;
  EXPECT_EQ(last_bytes("\U0001f600", 2), "");
}

TEST(CutText, TextInAnotherEncodingIsCutAtItsLength) {
  const std::string text(10, '\x80');
  EXPECT_EQ(first_bytes(text, 6), text.substr(0, 6));
  EXPECT_EQ(last_bytes(text, 6), text.substr(0, 6));
}

}  // namespace
}  // namespace cadre::base
