// The scheduler for tune::PopulationBasedTrainingReplay, which documents its behaviour: its one trial exploits itself
// at every change of its schedule.
// Source: Ray Tune's PopulationBasedTrainingReplay; docs/from-ray-tune.md lists the differences.
#pragma once

#include <string>

#include "tune/schedulers/scheduler.h"

namespace cadre::tune {

class PbtReplayScheduler final : public TrialScheduler {
 public:
  explicit PbtReplayScheduler(PolicySchedule schedule) : schedule_(std::move(schedule)) {}

  bool begins_with_first_config() const override { return true; }
  void on_trial_add(const Trial& trial) override;
  Decision on_result(const Trial& trial, const Metrics& result, Population& population) override;
  std::optional<TrialIndex> choose(std::span<const TrialIndex> candidates, const Population& population) override;
  Value save() const override;
  void load(const Value& state) override;
  std::string debug_string() const override;

 private:
  PolicySchedule schedule_;
  struct State {
    std::int64_t made = 0;  // number of changes made
    Value step = 0;         // training_iteration of the last result that was compared with a change
  };
  State state_;
};

}  // namespace cadre::tune
