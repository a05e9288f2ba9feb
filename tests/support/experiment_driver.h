// An experiment's core, fed by a test.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tune/experiment.h"

namespace cadre::test_support {

using namespace tune;

// An experiment whose events the test feeds, one by one. Each call returns the decisions, as "launch 0", "pause 1", …,
// without those that only make a trial.
class Driver {
 public:
  Driver(TunerOptions options, double slots) : Driver(std::move(options), Resources{.cpus = slots}, {}) {}
  Driver(TunerOptions options, const Resources& machine, const Resources& of_a_trial)
      : experiment_({"f", of_a_trial}, std::move(options)) {
    decided = feed(ControllerStarted{machine});
  }

  std::vector<std::string> feed(const Event& event) {
    actions.clear();
    experiment_.handle(event, actions);
    std::vector<std::string> made;
    for (const auto* decision : all<RecordDecision>()) {
      if (decision->kind != DecisionKind::make)
        made.push_back(std::string(to_string(decision->kind)) + " " + std::to_string(decision->trial));
    }
    return made;
  }
  // Feeds the next report of the trial's current worker.
  std::vector<std::string> report(TrialIndex trial, Metrics metrics, std::string checkpoint = {}) {
    const Trial& present = experiment_.trials().at(trial);
    return feed(ResultReported{trial, present.attempt, {present.step + 1, std::move(metrics), std::move(checkpoint)}});
  }
  template <class T>
  std::vector<const T*> all() const {
    std::vector<const T*> found;
    for (const Action& action : actions) {
      if (const auto* one = std::get_if<T>(&action)) found.push_back(one);
    }
    return found;
  }

  std::vector<std::string> decided;  // at the start
  Actions actions;                   // of the last event
  const Trial& trial(TrialIndex index) const { return experiment_.trials().at(index); }
  bool finished() const { return experiment_.finished(); }
  std::int64_t parked_workers() const { return experiment_.parked_workers(); }

  Experiment& experiment() { return experiment_; }

 private:
  Experiment experiment_;
};

}  // namespace cadre::test_support
