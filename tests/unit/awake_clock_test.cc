#include "control/awake_clock.h"

#include <gtest/gtest.h>

#include <deque>

namespace cadre::control {
namespace {

using engine::Event;
using std::chrono::milliseconds;
using std::chrono::seconds;

// An engine that advances its clocks as planned for each wait.
class PlannedEngine final : public engine::Engine {
 public:
  struct Wait {
    milliseconds lasts{0};
    std::size_t events = 0;
    milliseconds wall{0};     // extra advance of the wall clock
    milliseconds stopped{0};  // part of `lasts`
  };
  std::deque<Wait> plan;
  std::vector<milliseconds> timeouts;

  void pass(milliseconds time) { now_ += time; }
  void stop(milliseconds time) {
    now_ += time;
    stopped_ += time;
  }

  Resources resources() const override { return {}; }
  void start(engine::WorkerId, const engine::WorkerSpec&) override {}
  void answer(engine::WorkerId, const channel::Answer&) override {}
  void reply(engine::WorkerId, const channel::StoreReply&) override {}
  void reply(engine::WorkerId, const channel::Reply&) override {}
  void kill(engine::WorkerId) override {}
  std::vector<Event> wait(std::optional<std::chrono::nanoseconds> timeout) override {
    timeouts.push_back(std::chrono::duration_cast<milliseconds>(timeout.value_or(seconds(-1))));
    if (plan.empty()) return {};
    const Wait next = plan.front();
    plan.pop_front();
    now_ += next.lasts;
    wall_ms_ += next.wall.count();
    stopped_ += next.stopped;
    return std::vector<Event>(next.events, engine::Exited{});
  }
  void wake() noexcept override {}
  Clock::duration stopped() const override { return stopped_; }
  Clock::time_point now() const override { return Clock::time_point(now_); }
  double wall_seconds() const override { return static_cast<double>(now_.count() + wall_ms_) / 1e3; }

 private:
  milliseconds now_{0};
  milliseconds stopped_{0};
  std::int64_t wall_ms_ = 0;
};

class AwakeClockTest : public ::testing::Test {
 protected:
  PlannedEngine engine;
  AwakeClock clock{engine};
  const AwakeClock::TimePoint start = clock.now();
};

TEST_F(AwakeClockTest, AStopWithinAWaitDoesNotCount) {
  engine.plan = {{.lasts = seconds(60), .events = 1, .stopped = milliseconds(59'700)}};
  EXPECT_EQ(clock.wait(milliseconds(300)).size(), 1u);
  EXPECT_EQ(clock.now(), start + milliseconds(300));
  EXPECT_EQ(clock.on_engine(clock.now()), engine.now());
  EXPECT_NEAR(clock.take_lost_seconds(), 59.7, 0.01);
  EXPECT_EQ(clock.take_lost_seconds(), 0);
}

TEST_F(AwakeClockTest, AStopBetweenTwoWaitsDoesNotCount) {
  engine.pass(seconds(1));
  engine.stop(seconds(60));
  EXPECT_EQ(clock.now(), start + seconds(1));
  EXPECT_EQ(clock.on_engine(clock.now()), engine.now());
  clock.wait(milliseconds(0));
  EXPECT_EQ(clock.last_reading(), start + seconds(1));
  EXPECT_NEAR(clock.take_lost_seconds(), 60, 0.01);
}

TEST_F(AwakeClockTest, ALittleLateIsNoStop) {
  engine.plan = {{.lasts = milliseconds(700)}};
  clock.wait(milliseconds(300));
  EXPECT_EQ(clock.now(), start + milliseconds(700));
  EXPECT_EQ(clock.take_lost_seconds(), 0);
}

TEST_F(AwakeClockTest, WhatTakesLongBetweenTwoWaitsIsNoStop) {
  engine.pass(seconds(60));
  clock.wait(milliseconds(0));
  EXPECT_EQ(clock.now(), start + seconds(60));
  EXPECT_EQ(clock.take_lost_seconds(), 0);
}

TEST_F(AwakeClockTest, NoWaitIsLongerThanASecond) {
  clock.wait(std::nullopt);
  clock.wait(seconds(100));
  EXPECT_EQ(engine.timeouts, (std::vector<milliseconds>{seconds(1), seconds(1)}));
}

TEST_F(AwakeClockTest, WhenTheTimeIsOverEverythingThatHasComeIsReturned) {
  engine.plan = {{.lasts = milliseconds(300), .events = 1}, {.events = 16}, {.events = 16}, {.events = 0}};
  EXPECT_EQ(clock.wait(milliseconds(300)).size(), 33u);
  EXPECT_EQ(clock.last_reading(), start + milliseconds(300));
}

TEST_F(AwakeClockTest, UntilThenNobodyIsKnownToBeLate) {
  engine.plan = {{.lasts = milliseconds(200), .events = 1}};
  EXPECT_EQ(clock.wait(milliseconds(300)).size(), 1u);
  EXPECT_EQ(clock.last_reading(), start);
}

TEST_F(AwakeClockTest, AMachineThatSleepsStopsTheSteadyClockToo) {
  engine.plan = {{.lasts = milliseconds(100), .wall = seconds(3600)}};
  clock.wait(milliseconds(100));
  EXPECT_EQ(clock.now(), start + milliseconds(100));
  EXPECT_NEAR(clock.take_lost_seconds(), 3600, 0.01);
}

TEST_F(AwakeClockTest, AWallClockThatWasSetBackIsNoticed) {
  engine.plan = {{.lasts = milliseconds(100), .wall = seconds(-3600)}};
  clock.wait(milliseconds(100));
  EXPECT_NEAR(clock.take_lost_seconds(), -3600, 0.01);
}

}  // namespace
}  // namespace cadre::control
