// The working stoppers of an experiment. Deterministic functions of the results that count, in order.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cadre/tune/stop.h"
#include "tune/trial.h"

namespace cadre::tune {

// Sees every result that counts.
class ResultStopper {
 public:
  enum class Verdict { go_on, stop_trial, stop_all };

  virtual ~ResultStopper() = default;
  // What a user's function throws passes through.
  virtual Verdict on_result(const Trial& trial, const Metrics& result) = 0;
  // The trial has ended.
  virtual void forget(TrialIndex) {}
  // What it has seen, for a new one of the same description.
  virtual Value save() const { return {}; }
  virtual void load(const Value&) {}
};

class Stoppers {
 public:
  explicit Stoppers(const Stop& stop);

  // The strongest verdict of all.
  ResultStopper::Verdict on_result(const Trial& trial, const Metrics& result);
  // The trial has ended: nothing of it needs to be remembered.
  void forget(TrialIndex trial);
  // The shortest time that a TimeoutStopper gives the experiment.
  std::optional<Seconds> timeout() const { return timeout_; }
  // Names of metrics that it looks at.
  const std::vector<std::string>& metrics() const { return metrics_; }

  Value save() const;
  void load(const Value& state);

 private:
  std::vector<std::unique_ptr<ResultStopper>> stoppers_;
  std::optional<Seconds> timeout_ = {};
  std::vector<std::string> metrics_ = {};
};

}  // namespace cadre::tune
