#include "base/display_text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>

namespace cadre::base {
namespace {

constexpr auto kUtf8 = Encoding::utf8;
constexpr auto kAscii = Encoding::ascii;

TEST(DisplayText, ControlCharactersAreMadeVisible) {
  EXPECT_EQ(printable("a\x1b[2Jb\r\n\t\x7f", kUtf8), "a\\x1b[2Jb\\x0d\\n\\t\\x7f");
  EXPECT_EQ(printable(std::string("nul\0", 4), kUtf8), "nul\\x00");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m",
                      kUtf8),
            "\\u{9b}31m");  // the one-character form of ESC [
}

TEST(DisplayText, NewLinesStayBetweenLines) {
  EXPECT_EQ(printable_lines("", kUtf8), "");
  EXPECT_EQ(printable_lines("a\x1b\n\nb", kUtf8), "a\\x1b\n\nb");
  EXPECT_EQ(printable_lines("a\n", kUtf8), "a\n");
}

TEST(DisplayText, WhatIsNoUtf8IsShownByteForByte) {
  EXPECT_EQ(printable("\xff\xc3", kUtf8), "\\xff\\xc3");
  EXPECT_EQ(printable("\xed\xa0\x80", kUtf8), "\\xed\\xa0\\x80");  // half of a surrogate pair
  EXPECT_EQ(printable("\xc0\x9b", kUtf8), "\\xc0\\x9b");           // ESC in two bytes
}

TEST(DisplayText, WhatHidesOrTurnsTextIsMadeVisible) {
  EXPECT_EQ(printable("a\u202eb\u200bc\ufeff\u2028", kUtf8), "a\\u{202e}b\\u{200b}c\\u{feff}\\u{2028}");
  EXPECT_EQ(printable("\u0301", kUtf8), "\\u{301}");
}

TEST(DisplayText, OtherTextStaysAndInAsciiIsReplaced) {
  EXPECT_EQ(printable("caf\u00e9 e\u0301 \u8a71 \U0001f600", kUtf8), "caf\u00e9 e\u0301 \u8a71 \U0001f600");
  EXPECT_EQ(printable("caf\u00e9 \u8a71", kAscii), "caf? ?");
}

TEST(DisplayText, WidthsAreColumnsOfATerminal) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("\u00e9e\u0301"), 2u);
  EXPECT_EQ(display_width("\u8a71\u984c"), 4u);
  EXPECT_EQ(display_width("\U0001f600"), 2u);
}

TEST(DisplayText, ShortenedTextHasAnEllipsisAndWholeCharacters) {
  EXPECT_EQ(first_columns("abcdef", 6, kUtf8), "abcdef");
  EXPECT_EQ(first_columns("abcdef", 5, kUtf8), "abcd…");
  EXPECT_EQ(first_columns("abcdef", 5, kAscii), "ab...");
  EXPECT_EQ(last_columns("abcdef", 5, kUtf8), "…cdef");
  EXPECT_EQ(last_columns("abcdef", 5, kAscii), "...ef");
  EXPECT_EQ(first_columns("\u8a71\u984c\u8a71", 4, kUtf8), "\u8a71…");
  EXPECT_EQ(last_columns("\u8a71\u984c\u8a71", 4, kUtf8), "…\u8a71");
  EXPECT_EQ(last_columns("e\u0301e\u0301e\u0301", 2, kUtf8), "…e\u0301");
  EXPECT_EQ(first_columns("abcdef", 2, kAscii), "..");
  EXPECT_EQ(last_columns("abcdef", 0, kUtf8), "");
}

class Locale : public ::testing::Test {
 protected:
  Locale() {
    for (const char* name : kNames) {
      if (const char* value = std::getenv(name)) before_[name] = value;
      ::unsetenv(name);
    }
  }
  ~Locale() override {
    for (const char* name : kNames) before_[name] ? ::setenv(name, before_[name]->c_str(), 1) : ::unsetenv(name);
  }

 private:
  static constexpr const char* kNames[] = {"LC_ALL", "LC_CTYPE", "LANG"};
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(Locale, TheFirstVariableThatIsSetNamesTheEncoding) {
  EXPECT_EQ(encoding_of_environment(), kAscii);
  ::setenv("LANG", "de_DE.UTF-8", 1);
  EXPECT_EQ(encoding_of_environment(), kUtf8);
  ::setenv("LC_CTYPE", "C.utf8", 1);
  EXPECT_EQ(encoding_of_environment(), kUtf8);
  ::setenv("LC_ALL", "C", 1);
  EXPECT_EQ(encoding_of_environment(), kAscii);
  ::setenv("LC_ALL", "", 1);
  EXPECT_EQ(encoding_of_environment(), kUtf8);
}

}  // namespace
}  // namespace cadre::base
