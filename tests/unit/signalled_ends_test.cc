#include "control/signalled_ends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace cadre::control {
namespace {

using engine::Event;
using engine::Exit;
using engine::Exited;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const SignalledEnds::TimePoint now{};

Event end(engine::WorkerId worker, Exit::Kind kind, int value) { return Exited{worker, {kind, value, ""}}; }

std::vector<engine::WorkerId> workers_of(const std::vector<Event>& events) {
  std::vector<engine::WorkerId> workers;
  for (const Event& event : events) {
    if (const auto* exited = std::get_if<Exited>(&event)) workers.push_back(exited->worker);
    if (const auto* received = std::get_if<engine::Received>(&event)) workers.push_back(received->worker);
  }
  return workers;
}

TEST(SignalledEnds, OtherEventsPassAtOnce) {
  SignalledEnds ends;
  EXPECT_THAT(workers_of(ends.pass({end(1, Exit::Kind::signal, SIGKILL), end(2, Exit::Kind::code, 1),
                                    engine::Received{3, channel::Finished{}}},
                                   false, now)),
              ElementsAre(1, 2, 3));
  EXPECT_FALSE(ends.due());
}

TEST(SignalledEnds, SuchAnEndWaitsWithEverythingBehindIt) {
  for (const auto& [kind, value] : {std::pair(Exit::Kind::signal, SIGTERM),
                                    {Exit::Kind::signal, SIGINT},
                                    {Exit::Kind::signal, SIGHUP},
                                    {Exit::Kind::code, 128 + SIGTERM}}) {
    SignalledEnds ends;
    EXPECT_THAT(workers_of(ends.pass({end(1, Exit::Kind::code, 0), end(2, kind, value), end(3, Exit::Kind::code, 0)},
                                     false, now)),
                ElementsAre(1));
    EXPECT_EQ(ends.due(), now + SignalledEnds::patience);
    EXPECT_THAT(ends.pass({end(4, Exit::Kind::code, 0)}, false, now + std::chrono::milliseconds(400)), IsEmpty());
    EXPECT_THAT(workers_of(ends.pass({}, false, now + SignalledEnds::patience)), ElementsAre(2, 3, 4));
    EXPECT_FALSE(ends.due());
  }
}

TEST(SignalledEnds, AnInterruptLetsEverythingPass) {
  SignalledEnds ends;
  EXPECT_THAT(ends.pass({end(1, Exit::Kind::signal, SIGTERM), end(2, Exit::Kind::code, 0)}, false, now), IsEmpty());
  EXPECT_THAT(workers_of(ends.pass({end(3, Exit::Kind::signal, SIGTERM)}, true, now)), ElementsAre(1, 2, 3));
}

TEST(SignalledEnds, EachWaitsFromItsOwnMoment) {
  SignalledEnds ends;
  const auto later = now + std::chrono::milliseconds(400);
  EXPECT_THAT(ends.pass({end(1, Exit::Kind::signal, SIGTERM)}, false, now), IsEmpty());
  EXPECT_THAT(ends.pass({end(2, Exit::Kind::signal, SIGTERM)}, false, later), IsEmpty());
  EXPECT_THAT(workers_of(ends.pass({}, false, now + SignalledEnds::patience)), ElementsAre(1));
  EXPECT_THAT(workers_of(ends.pass({}, false, later + SignalledEnds::patience)), ElementsAre(2));
}

}  // namespace
}  // namespace cadre::control
