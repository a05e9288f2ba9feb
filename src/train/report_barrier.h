// Where the ranks of a group wait for each other in report(). Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "train/checkpoint_part.h"
#include "train/events.h"

namespace cadre::train {

// What one rank has reported.
struct RankReport {
  std::int64_t step = 0;
  Metrics metrics = {};
  PartReport said = {};
};

class ReportBarrier {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // For a new group; nobody waits.
  void begin(std::int64_t attempt, std::int64_t world_size, std::chrono::nanoseconds patience);

  // A rank has reported, or its function has returned. What follows is GroupReported when it was the last one, and
  // GroupBroke when the ranks do not report equally often, or not one checkpoint.
  std::optional<Event> reported(Rank rank, RankReport report, TimePoint now);
  std::optional<Event> returned(Rank rank);
  // GroupBroke, with the ranks that are missing, when others have waited for them too long.
  std::optional<Event> expire(TimePoint now);
  std::optional<TimePoint> deadline() const { return deadline_; }

  // Those that wait; they are to be answered.
  std::vector<Rank> take_waiting();

 private:
  struct Member {
    std::optional<RankReport> report = {};
    std::int64_t reports = 0;  // so far, with the one that waits
    bool returned = false;
  };

  std::optional<Event> look();
  Event join();

  std::int64_t attempt_ = 0;
  std::chrono::nanoseconds patience_ = {};
  std::vector<Member> members_ = {};
  std::optional<TimePoint> deadline_ = {};
};

}  // namespace cadre::train
