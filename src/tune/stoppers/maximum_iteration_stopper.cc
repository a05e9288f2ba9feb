#include "cadre/tune/stoppers/maximum_iteration_stopper.h"

#include <fmt/format.h>

#include <map>

#include "cadre/stored.h"
#include "cadre/tune/tuner.h"

namespace cadre::tune {
namespace {

class IterationCounter final : public Stopper {
 public:
  explicit IterationCounter(MaximumIterationStopper options) : options_(options) {}

  bool on_result(const TrialView& trial, const Metrics&) override {
    // A trial that goes on after its end, or under another stop, has results that this stopper has not counted.
    const auto count = counts_.try_emplace(trial.index(), trial.num_results()).first;
    return ++count->second >= options_.max_iter;
  }
  void on_trial_end(const TrialView& trial) override { counts_.erase(trial.index()); }
  Value save() const override { return to_stored(counts_); }
  void load(const Value& state) override { counts_ = from_value<Counts>(state); }

 private:
  using Counts = std::map<TrialIndex, std::int64_t>;
  MaximumIterationStopper options_;
  Counts counts_ = {};
};

}  // namespace

std::unique_ptr<Stopper> MaximumIterationStopper::make(const StopperSetting&) const {
  return std::make_unique<IterationCounter>(*this);
}

void MaximumIterationStopper::check(const TunerOptions&, Faults& faults) const {
  faults.unless(max_iter >= 1, "max_iter", fmt::format("it is {}; a trial has at least 1 result", max_iter));
}

template class detail::HeldOptionsOf<Stopper, StopperSetting, MaximumIterationStopper>;

}  // namespace cadre::tune
