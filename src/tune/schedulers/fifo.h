// First in, first out: no trial is ever paused or stopped.
#pragma once

#include "tune/schedulers/scheduler.h"

namespace cadre::tune {

class FifoScheduler final : public TrialScheduler {
 public:
  Decision on_result(const Trial&, const Metrics&, Population&) override { return {}; }
  std::optional<TrialIndex> choose(std::span<const TrialIndex> candidates, const Population&) override {
    return candidates.empty() ? std::nullopt : std::optional(candidates.front());
  }
  std::string debug_string() const override { return "Using FIFO scheduling algorithm."; }
};

}  // namespace cadre::tune
