#include "view/screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cadre::view {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const WindowSize kWindow{80, 24};
const Lines kBlock{{{"one"}}, {{"tw", Style::bold}, {"o"}}};

// tests/compat/console_test.py tests the result in a terminal.

TEST(Screen, TheFirstBlockIsDrawnWhereTheCursorIs) {
  EXPECT_EQ(Screen(false).draw(kWindow, "", kBlock), "one\x1b[K\r\ntwo\x1b[K\r\n\x1b[J");
}

TEST(Screen, TheNextOneInItsPlaceAndTheLogAboveIt) {
  Screen screen(false);
  screen.draw(kWindow, "", kBlock);
  EXPECT_EQ(screen.draw(kWindow, "said\n", {{{"three"}}}), "\r\x1b[2A\x1b[Jsaid\r\nthree\x1b[K\r\n\x1b[J");
  EXPECT_THAT(screen.draw(kWindow, "", kBlock), StartsWith("\r\x1b[1A"));
}

TEST(Screen, AfterAChangeOfSizeItBeginsOnACleanScreen) {
  Screen screen(false);
  screen.draw(kWindow, "", kBlock);
  EXPECT_THAT(screen.draw({70, 5}, "", kBlock), StartsWith("\n\n\n\n\n\x1b[H"));
  EXPECT_THAT(screen.draw({70, 5}, "", kBlock), StartsWith("\r\x1b[2A"));
}

TEST(Screen, WhatIsFinishedStays) {
  Screen screen(false);
  screen.draw(kWindow, "", kBlock);
  EXPECT_EQ(screen.finish(kWindow, "", {{{"end"}}}), "\r\x1b[2A\x1b[Jend\r\n");
  EXPECT_THAT(screen.draw(kWindow, "", kBlock), StartsWith("one"));
}

TEST(Screen, StylesEndWithTheirText) {
  EXPECT_THAT(Screen(true).draw(kWindow, "", kBlock), HasSubstr("\x1b[1mtw\x1b[mo"));
  EXPECT_THAT(Screen(false).draw(kWindow, "", kBlock), Not(HasSubstr("m")));
}

}  // namespace
}  // namespace cadre::view
