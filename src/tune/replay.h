// Feeds recorded events to an experiment again and compares every decision with the one that was recorded.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "store/experiment_store.h"
#include "tune/experiment.h"
#include "tune/loggers/result_files.h"
#include "tune/running_time.h"

namespace cadre::tune {

class Replay {
 public:
  // `where` names the experiment in errors. With `allow_divergence` a decision that comes out differently is no error:
  // what follows from it counts instead of what was recorded.
  Replay(Experiment& experiment, ResultFiles& files, RunningTime& running_time, std::string where,
         bool allow_divergence)
      : experiment_(experiment),
        files_(files),
        running_time_(running_time),
        where_(std::move(where)),
        allow_divergence_(allow_divergence) {}

  // The store's rows after `sequence`, in order. Throws StorageError at the first decision that differs.
  void run(const store::ExperimentStore& store, std::int64_t after_sequence);

  std::int64_t events() const { return events_; }
  std::int64_t last_event() const { return last_event_; }
  // The event after which a decision differed first, how it did, and all decisions from there on as they are now.
  struct Divergence {
    std::int64_t event = 0;
    std::string description = {};
    std::vector<store::DecisionRow> decisions = {};
  };
  const std::optional<Divergence>& divergence() const { return divergence_; }

 private:
  void take(std::int64_t sequence, double time, const Event& event);
  void compare(const store::DecisionRow& recorded);
  void end_of_event();
  void differs(const std::string& recorded, const std::string& now);

  Experiment& experiment_;
  ResultFiles& files_;
  RunningTime& running_time_;
  std::string where_;
  bool allow_divergence_;
  Actions actions_;
  std::vector<store::DecisionRow> decisions_;  // of the last event
  std::size_t compared_ = 0;                   // so many of them
  std::int64_t events_ = 0;
  std::int64_t last_event_ = 0;
  std::optional<Divergence> divergence_ = {};
};

}  // namespace cadre::tune
