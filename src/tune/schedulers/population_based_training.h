// The scheduler for tune::PopulationBasedTraining, which documents its behaviour.
// Source: Jaderberg et al. 2017; Ray Tune's PopulationBasedTraining; docs/from-ray-tune.md lists the differences.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "tune/schedulers/scheduler.h"

namespace cadre::tune {

class PbtScheduler final : public TrialScheduler {
 public:
  PbtScheduler(PopulationBasedTraining settings, std::uint64_t seed);

  bool needs_whole_population() const override { return true; }
  void on_trial_add(const Trial& trial) override;
  Decision on_result(const Trial& trial, const Metrics& result, Population& population) override;
  Decision on_trial_end(const Trial& trial, Population& population) override;
  Decision on_deadline(std::int64_t number, Population& population) override;
  Decision on_controller_start(Population& population) override;
  std::optional<TrialIndex> choose(std::span<const TrialIndex> candidates, const Population& population) override;
  Value save() const override;
  void load(const Value& state) override;
  std::string debug_string() const override;

 private:
  // The state of a trial since its last comparison.
  struct Member {
    std::optional<double> last_score = {};  // larger is better
    double last_perturbation_time = 0;
    double last_train_time = 0;
    std::int64_t last_iteration = 0;
    std::uint64_t donors_drawn = 0;    // random numbers used to choose donors
    std::uint64_t explores_drawn = 0;  // and to explore
  };
  struct State {
    std::vector<Member> members = {};  // by the trial's index
    double next_sync = 0;              // synchronous: all live trials wait here
    std::int64_t round = 0;            // barriers passed
    std::int64_t exploits = 0;
  };
  enum class Rank : std::uint8_t { middle, lower, upper };
  struct Quantiles {
    std::vector<TrialIndex> lower;  // worst first
    std::vector<TrialIndex> upper;  // best last
    std::vector<Rank> ranks;        // of all members
  };

  bool at_interval(const Member& member, double time) const;
  bool never_saves(const Trial& trial, const Population& population) const;
  bool may_become_donor(TrialIndex trial, const Population& population) const;
  // Synchronous: returns the trials that wait at the barrier.
  std::vector<TrialIndex> arrived(const Population& population) const;
  double furthest(const std::vector<TrialIndex>& members) const;
  bool round_is_complete(const Population& population, std::optional<TrialIndex> reporter) const;
  void perturb_all(double time, const std::vector<TrialIndex>& members, Population& population, Decision& decision);
  double sync_after(double time) const;
  template <class Trials>
  Quantiles quantiles(const Trials& trials) const;
  void exploit(TrialIndex target, const std::vector<TrialIndex>& upper, Population& population, Decision& decision);

  PopulationBasedTraining settings_;
  std::uint64_t seed_;
  State state_;
};

}  // namespace cadre::tune
