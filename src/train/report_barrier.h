// The barrier in report(), where the ranks of a group wait for each other. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "train/checkpoint_part.h"
#include "train/events.h"

namespace cadre::train {

// One rank's report.
struct RankReport {
  std::int64_t step = 0;
  Metrics metrics = {};
  PartReport said = {};
};

class ReportBarrier {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Starts a new group without waiting ranks. `patience`: how long ranks wait for the others.
  void begin(std::int64_t attempt, std::int64_t world_size, std::chrono::nanoseconds patience);

  // Handle a rank's report, or the return of its function. They return GroupReported once all ranks have reported, and
  // GroupBroke if the ranks do not report equally often or report different checkpoints.
  std::optional<Event> reported(Rank rank, RankReport report, TimePoint now);
  std::optional<Event> returned(Rank rank);
  // Returns GroupBroke, which names the missing ranks, if other ranks have waited for them too long.
  std::optional<Event> expire(TimePoint now);
  std::optional<TimePoint> deadline() const { return deadline_; }

  // Removes and returns the waiting ranks, which the caller must answer.
  std::vector<Rank> take_waiting();

 private:
  struct Member {
    std::optional<RankReport> report = {};
    std::int64_t reports = 0;  // so far, including the waiting one
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
