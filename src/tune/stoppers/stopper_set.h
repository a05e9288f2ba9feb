// The stoppers of an experiment.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cadre/tune/stop.h"

namespace cadre::tune {

class StopperSet {
 public:
  // `stop` must be good: a Tuner checks it.
  StopperSet(const Stop& stop, const StopperSetting& setting);

  // Passes a result to all stoppers but those whose answers are recorded. Returns true if one of them ends the trial.
  bool on_result(const TrialView& trial, const Metrics& result);
  // Does so with the stoppers whose answers are recorded. Passes on their exceptions.
  bool on_result_recorded(const TrialView& trial, const Metrics& result);
  void on_trial_end(const TrialView& trial);
  // Returns why all trials stop, by the first stopper that says so; empty: none does.
  std::optional<std::string> stop_all() const;

  // Returns the shortest timeout, if any.
  std::optional<Seconds> timeout() const { return timeout_; }
  // Returns the names of the metrics that the stoppers use.
  const std::vector<std::string>& metrics() const { return metrics_; }

  Value save() const;
  void load(const Value& state);

 private:
  struct Member {
    std::unique_ptr<Stopper> stopper;
    bool is_recorded = false;
  };
  bool pass_on(const TrialView& trial, const Metrics& result, bool to_recorded);

  std::vector<Member> members_ = {};
  std::optional<Seconds> timeout_ = {};
  std::vector<std::string> metrics_ = {};
};

}  // namespace cadre::tune
