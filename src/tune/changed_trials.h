// Collects the trials that may have changed: those that an event or a decision concerned. Pure.
#pragma once

#include <set>
#include <variant>

#include "tune/events.h"

namespace cadre::tune {

class ChangedTrials {
 public:
  // Adds the trials of an event and of the actions that followed from it.
  void add(const Event& event, const Actions& actions) {
    std::visit([this](const auto& content) { add_trial_of(content); }, event);
    for (const Action& action : actions) {
      if (const auto* decision = std::get_if<RecordDecision>(&action)) trials_.insert(decision->trial);
      if (const auto* save = std::get_if<SaveTrial>(&action)) trials_.insert(save->trial);
    }
  }

  // Returns the trials added since the last forget().
  const std::set<TrialIndex>& trials() const { return trials_; }
  void forget() { trials_.clear(); }

 private:
  void add_trial_of(const auto& event) {
    if constexpr (requires { event.trial; }) trials_.insert(event.trial);
  }

  std::set<TrialIndex> trials_;
};

}  // namespace cadre::tune
