// The validations of a run's checkpoints: waiting, running and finished. Pure: it decides; the shell starts and kills
// validators.
//
// An unfinished validation keeps its checkpoint and excludes it from the ranking. Each validation finishes once:
// messages from a validator that was killed or replaced are ignored.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cadre/validation.h"
#include "resources/cluster.h"
#include "train/checkpoints.h"
#include "train/events.h"

namespace cadre::train {

struct Validation {
  enum class State {
    waiting,
    running,
    validated,
    timed_out,
    failed,
    skipped,  // a later one was started
    pausing,  // delay before it waits again
  };
  WantedValidation wanted = {};
  State state = State::waiting;
  std::int64_t attempt = 0;     // number of started tries
  std::int64_t failures = 0;    // number of failed tries
  bool has_worker = false;      // its process has not ended
  bool is_late = false;         // the present try has timed out
  bool is_forgotten = false;    // the checkpoint was removed, but the worker has not ended
  resources::Place place = {};  // the worker's
  Metrics reported = {};        // as reported with the checkpoint
  Metrics metrics = {};         // as returned by the validator
  std::string error = {};       // of the last failed try
  bool operator==(const Validation&) const = default;
};

class Validations {
 public:
  explicit Validations(const ValidationConfig& config);

  // Compares the recorded states.
  bool operator==(const Validations& other) const { return recorded_ == other.recorded_; }

  // ---- Events. Actions are appended.

  // Adds the validation of a committed checkpoint.
  void add(checkpoint::CheckpointId id, const WantedValidation& wanted, Checkpoints& checkpoints);
  void returned(const ValidatorReturned& event, Checkpoints& checkpoints, Actions& actions);
  void threw(const ValidatorThrew& event, Checkpoints& checkpoints, Actions& actions);
  void ended(const ValidatorEnded& event, Checkpoints& checkpoints, Actions& actions);
  void timed_out(checkpoint::CheckpointId id, Actions& actions);
  // Returns it to the waiting ones after its delay.
  void try_again(checkpoint::CheckpointId id);
  // Restarts unfinished validations in a new controller; no worker of an earlier one is left.
  void resume();
  // Removes the validation of a checkpoint that was removed. A worker that has not ended keeps its resources until
  // then.
  void forget(checkpoint::CheckpointId id);
  // Kills the running validators; their validations wait for another controller.
  void stop(Actions& actions);
  // Starts as many as fit into `room`: the resources of all nodes without the group's.
  void start(resources::Cluster room, Checkpoints& checkpoints, Actions& actions);

  // ---- Queries

  // Subtracts the resources of running validators.
  void occupy(resources::Cluster& room) const;
  bool has_workers() const;
  bool is_pending() const;  // true if any is
  bool is_pending(checkpoint::CheckpointId id) const;
  bool is_running(checkpoint::CheckpointId id) const;
  bool is_pausing(checkpoint::CheckpointId id) const;
  // Returns a text if validations of the run have ended and none has succeeded; else empty.
  std::string summary() const;
  // Returns the resources of a validation whose report does not say them.
  const Resources& needs() const { return needs_; }
  // Returns the resources of those that wait for room, in the order in which they will be started.
  std::vector<Resources> waiting_needs() const;
  // Returns nullptr if none was requested.
  const Validation* find(checkpoint::CheckpointId id) const;

 private:
  struct Recorded {
    std::map<checkpoint::CheckpointId, Validation> validations = {};  // by checkpoint, which exists unless is_forgotten
    std::int64_t succeeded = 0;  // of all finished ones, also of removed checkpoints
    std::int64_t failed = 0;
    std::string last_error = {};                       // of the last failed one
    std::map<std::string, std::string> hopeless = {};  // functions that cannot succeed, with the reason
    bool operator==(const Recorded&) const = default;
  };

  Validation* present(checkpoint::CheckpointId id, std::int64_t attempt);
  void fail(checkpoint::CheckpointId id, const std::string& reason, Checkpoints& checkpoints, Actions& actions);
  void give_up(checkpoint::CheckpointId id, const std::string& reason, Checkpoints& checkpoints, Actions& actions);
  void finish(checkpoint::CheckpointId id, Validation::State state, Checkpoints& checkpoints, Actions& actions);
  void say_that_it_waits(checkpoint::CheckpointId id, const resources::Cluster& room, const Checkpoints& checkpoints,
                         Actions& actions);
  std::vector<checkpoint::CheckpointId> waiting() const;
  Resources needs_of(const Validation& validation) const;
  void skip_older(checkpoint::CheckpointId id, Checkpoints& checkpoints, Actions& actions);

  ValidationConfig config_;
  Resources needs_;
  Recorded recorded_;
  bool has_said_that_it_waits_ = false;  // by this controller; not part of the recorded state
};

// Returns a checkpoint's status; `validation`: the checkpoint's, nullptr: none.
ReportedCheckpointStatus status_of(const Validation* validation);

}  // namespace cadre::train
