// The implementations of an experiment's stoppers. Each is a deterministic function of the results that count, in
// order.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cadre/tune/stop.h"
#include "tune/trial.h"

namespace cadre::tune {

// A stopper that gets every result that counts.
class ResultStopper {
 public:
  enum class Verdict { go_on, stop_trial, stop_all };

  virtual ~ResultStopper() = default;
  virtual Verdict on_result(const Trial& trial, const Metrics& result) = 0;
  // Drops the state of a trial that has ended.
  virtual void forget(TrialIndex) {}
  // Returns its state, for a new stopper of the same description.
  virtual Value save() const { return {}; }
  virtual void load(const Value&) {}
};

class Stoppers {
 public:
  explicit Stoppers(const Stop& stop);

  // Passes the result to all stoppers but functions of the program; returns the strongest verdict.
  ResultStopper::Verdict on_result(const Trial& trial, const Metrics& result);
  // Returns true if a function of the program ends the trial. Passes on its exceptions.
  bool ask_functions(const Trial& trial, const Metrics& result) const;
  // Drops the state of a trial that has ended.
  void forget(TrialIndex trial);
  // Returns the shortest timeout of the TimeoutStoppers, if any.
  std::optional<Seconds> timeout() const { return timeout_; }
  // Returns the names of the metrics that the stoppers use.
  const std::vector<std::string>& metrics() const { return metrics_; }

  Value save() const;
  void load(const Value& state);

 private:
  std::vector<std::unique_ptr<ResultStopper>> stoppers_;
  std::vector<detail::StopPointer> functions_ = {};
  std::optional<Seconds> timeout_ = {};
  std::vector<std::string> metrics_ = {};
};

}  // namespace cadre::tune
