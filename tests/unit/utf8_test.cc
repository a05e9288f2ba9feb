#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace cadre::base {
namespace {

TEST(Utf8, WellFormedTextStaysAsItIs) {
  const std::string text =
      std::string("a\0\x7f", 3) +
      " \xc2\x80 \xdf\xbf \xe0\xa0\x80 \xed\x9f\xbf \xef\xbf\xbf \xf0\x90\x80\x80 \xf4\x8f\xbf\xbf";
  EXPECT_TRUE(is_utf8(text));
  EXPECT_EQ(to_utf8(text), text);
}

TEST(Utf8, EveryByteOfSomethingElseIsReplaced) {
  const std::string bad = "\xef\xbf\xbd";
  for (const char* text : {"\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                           "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe2\x82", "\xf0\x9f\x98"}) {
    EXPECT_FALSE(is_utf8(text));
    std::string replaced = "a";
    for (std::size_t i = 0; i < std::string_view(text).size(); ++i) replaced += bad;
    EXPECT_EQ(to_utf8(std::string("a") + text + "z"), replaced + "z");
  }
}

TEST(Utf8, ASequenceIsACodePoint) {
  EXPECT_EQ(utf8_code_point("a"), U'a');
  EXPECT_EQ(utf8_code_point("\xff"), 0xffU);
  EXPECT_EQ(utf8_code_point("\xc2\x80"), 0x80U);
  EXPECT_EQ(utf8_code_point("\xdf\xbf"), 0x7ffU);
  EXPECT_EQ(utf8_code_point("\xef\xbf\xbd"), 0xfffdU);
  EXPECT_EQ(utf8_code_point("\xf4\x8f\xbf\xbf"), 0x10ffffU);
}

TEST(Utf8, TheFirstSequenceHasALengthOrIsNone) {
  EXPECT_EQ(utf8_sequence_length(""), 0u);
  EXPECT_EQ(utf8_sequence_length("a\xff"), 1u);
  EXPECT_EQ(utf8_sequence_length("\xc3\xa9\xff"), 2u);
  EXPECT_EQ(utf8_sequence_length("\xef\xbf\xbd"), 3u);
  EXPECT_EQ(utf8_sequence_length("\xf0\x9f\x98\x80"), 4u);
  for (const char* text : {"\x80", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"})
    EXPECT_EQ(utf8_sequence_length(text), 0u);
}

}  // namespace
}  // namespace cadre::base
