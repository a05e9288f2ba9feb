#include "tune/running_time.h"

#include <gtest/gtest.h>

#include "cadre/stored.h"

namespace cadre::tune {
namespace {

TEST(RunningTime, TimesBetweenSessionsDoNotCount) {
  RunningTime time;
  time.begin_session(100);
  time.advance_to(130);
  time.begin_session(1000);
  time.advance_to(1005);
  EXPECT_EQ(time.seconds_at(1010), 40);
  EXPECT_EQ(time.sessions(), 2);
}

TEST(RunningTime, AClockThatIsSetBackTakesNothingAway) {
  RunningTime time;
  time.begin_session(100);
  time.advance_to(130);
  time.advance_to(50);
  EXPECT_EQ(time.seconds_at(60), 30);
}

TEST(RunningTime, GoesOnWhenAClockWasSetBack) {
  RunningTime time;
  time.begin_session(5000);
  time.advance_to(5010);
  time.advance_to(1412);  // one second after the clock was set back by 3599 seconds
  time.leave_out(-3599);
  EXPECT_EQ(time.seconds(), 10);
  time.advance_to(1417);
  EXPECT_EQ(time.seconds(), 16);
  EXPECT_EQ(time.seconds_at(1420), 19);
}

TEST(RunningTime, WhatIsLeftOutDoesNotCount) {
  RunningTime time;
  time.begin_session(100);
  time.advance_to(130);
  time.leave_out(20);
  EXPECT_EQ(time.seconds_at(140), 20);
  time.leave_out(1000);
  EXPECT_EQ(time.seconds(), 0) << "no session is shorter than nothing";
  time.begin_session(500);
  time.advance_to(505);
  EXPECT_EQ(time.seconds(), 5);
}

TEST(RunningTime, ItGoesOnFromWhereItWasSaved) {
  RunningTime time;
  time.begin_session(100);
  time.advance_to(130);
  RunningTime loaded(cadre::from_value<RunningTime::State>(cadre::to_stored(time.state())));
  loaded.begin_session(200);
  EXPECT_EQ(loaded.seconds_at(205), 35);
  EXPECT_EQ(loaded.sessions(), 2);
}

}  // namespace
}  // namespace cadre::tune
