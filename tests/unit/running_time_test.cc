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
  RunningTime loaded(cadre::from_value<RunningTime::State>(cadre::to_stored(time.state())), false);
  loaded.begin_session(200);
  EXPECT_EQ(loaded.seconds_at(205), 35);
  EXPECT_EQ(loaded.sessions(), 2);
}

// ---- Pauses

// Returns an experiment's time that has run for 30 s and pauses at 130.
RunningTime paused() {
  RunningTime time;
  time.handle(ControllerStarted{}, 100);
  time.handle(PauseRequested{}, 130);
  return time;
}

TEST(RunningTime, StandsStillInAPause) {
  RunningTime time = paused();
  EXPECT_TRUE(time.is_paused());
  time.handle(FunctionReturned{}, 131);  // a trial that stops for it
  EXPECT_EQ(time.seconds(), 30);
  EXPECT_EQ(time.seconds_at(500), 30);
}

TEST(RunningTime, GoesOnAfterAPauseFromWhereItStood) {
  RunningTime time = paused();
  time.handle(ResumeRequested{}, 500);
  EXPECT_FALSE(time.is_paused());
  EXPECT_EQ(time.seconds(), 30);
  EXPECT_EQ(time.seconds_at(510), 40);
}

TEST(RunningTime, APauseThatAnInterruptionEndsDoesNotCountEither) {
  RunningTime time = paused();
  time.handle(ExperimentInterrupted{}, 500);
  time.handle(FunctionReturned{}, 502);
  EXPECT_EQ(time.seconds(), 32);
  time = paused();  // its controller is killed
  time.handle(ControllerStarted{}, 900);
  EXPECT_EQ(time.seconds_at(903), 33);
}

TEST(RunningTime, WhatIsLostInAPauseIsNotLeftOutTwice) {
  RunningTime time = paused();
  time.handle(TimeLost{200}, 400);  // the machine slept
  time.handle(ResumeRequested{}, 500);
  EXPECT_EQ(time.seconds(), 30);
}

TEST(RunningTime, AClockThatIsSetBackInAPauseChangesNothing) {
  RunningTime time = paused();
  time.handle(TimeLost{-100}, 40);
  time.handle(ResumeRequested{}, 60);
  EXPECT_EQ(time.seconds_at(65), 35);
}

TEST(RunningTime, ASavedPauseIsOneStill) {
  RunningTime loaded(paused().state(), true);
  loaded.handle(FunctionReturned{}, 131);
  EXPECT_EQ(loaded.seconds(), 30);
}

}  // namespace
}  // namespace cadre::tune
