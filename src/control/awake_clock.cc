#include "control/awake_clock.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace cadre::control {
namespace {

// One call returns some of the events that have arrived, but new reports may arrive as fast as they are read.
constexpr int kMostLooks = 64;

}  // namespace

AwakeClock::AwakeClock(engine::Engine& engine)
    : engine_(engine), last_reading_(engine.now()), compared_(last_reading_), wall_(engine.wall_seconds()) {}

AwakeClock::TimePoint AwakeClock::now() const {
  for (auto before = engine_.stopped();;) {
    const TimePoint time = engine_.now();
    const auto after = engine_.stopped();
    if (after == before) return time - after;
    before = after;  // the process was stopped between the two
  }
}

std::vector<engine::Event> AwakeClock::wait(std::optional<std::chrono::nanoseconds> timeout) {
  const std::chrono::nanoseconds longest =
      std::min<std::chrono::nanoseconds>(timeout.value_or(longest_wait), longest_wait);
  last_reading_ = now();
  std::vector<engine::Event> events = engine_.wait(longest);
  if (now() - last_reading_ >= longest) {
    for (int looks = 0; looks < kMostLooks; ++looks) {
      last_reading_ = now();
      std::vector<engine::Event> more = engine_.wait(std::chrono::nanoseconds(0));
      if (more.empty()) break;
      std::ranges::move(more, std::back_inserter(events));
    }
  }
  compare_clocks();
  return events;
}

void AwakeClock::compare_clocks() {
  const TimePoint now = this->now();
  const double wall = engine_.wall_seconds();
  const double lost = wall - wall_ - std::chrono::duration<double>(now - compared_).count();
  if (std::abs(lost) > std::chrono::duration<double>(slack).count()) lost_seconds_ += lost;
  compared_ = now;
  wall_ = wall;
}

}  // namespace cadre::control
