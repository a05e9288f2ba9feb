// The validations of a run's checkpoints: those that wait, those that go on, and what has become of the others. Pure:
// it decides, others start and end validators.
//
// A validation that is not finished keeps its checkpoint, and out of the ranking. Each is finished once: what a
// validator says that was ended, or begun again, does not count.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/archive.h"
#include "cadre/validation.h"
#include "run/resource_ledger.h"
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
    skipped,  // a later one has begun
    pausing,  // before it waits again
  };
  WantedValidation wanted = {};
  State state = State::waiting;
  std::int64_t attempt = 0;   // tries that have begun
  std::int64_t failures = 0;  // tries that have failed
  bool has_worker = false;    // a process that has not ended
  bool is_late = false;       // the present try has taken too long
  bool is_forgotten = false;  // the checkpoint is gone, and the worker has still to end
  run::Gpus gpus = {};        // of the worker
  Metrics reported = {};      // that the checkpoint was reported with
  Metrics metrics = {};       // that the validator has returned
  std::string error = {};     // of the last try that has failed

  static void fields(auto& archive, auto& validation) {
    archive("wanted", validation.wanted);
    archive("state", validation.state);
    archive("attempt", validation.attempt);
    archive("failures", validation.failures);
    archive("has_worker", validation.has_worker);
    archive("is_late", validation.is_late);
    archive("is_forgotten", validation.is_forgotten);
    archive("gpus", validation.gpus);
    archive("reported", validation.reported);
    archive("metrics", validation.metrics);
    archive("error", validation.error);
  }
};

class Validations {
 public:
  explicit Validations(const ValidationConfig& config);

  // ---- What happens to them. Actions are appended.

  // A checkpoint was committed that is to be validated.
  void add(run::CheckpointId id, const WantedValidation& wanted, Checkpoints& checkpoints);
  void returned(const ValidatorReturned& event, Checkpoints& checkpoints, Actions& actions);
  void threw(const ValidatorThrew& event, Checkpoints& checkpoints, Actions& actions);
  void ended(const ValidatorEnded& event, Checkpoints& checkpoints, Actions& actions);
  void timed_out(run::CheckpointId id, Actions& actions);
  // Its pause is over.
  void try_again(run::CheckpointId id);
  // Another controller goes on; no worker of an earlier one is left.
  void resume();
  // The checkpoint is not there any more. A worker that has not ended keeps its resources until then.
  void forget(run::CheckpointId id);
  // Ends what goes on, which waits then for another controller.
  void stop(Actions& actions);
  // Starts as many as there is room for on a machine, where the group's workers have taken theirs.
  void start(run::ResourceLedger room, Checkpoints& checkpoints, Actions& actions);

  // ---- How things stand

  // Takes what running validators have.
  void occupy(run::ResourceLedger& ledger) const;
  bool has_workers() const;
  bool is_pending() const;  // any of them
  bool is_pending(run::CheckpointId id) const;
  bool is_running(run::CheckpointId id) const;
  bool is_pausing(run::CheckpointId id) const;
  // Returns a text if validations of the run have ended and none has succeeded; else empty.
  std::string summary() const;
  // What one of them needs.
  const Resources& needs() const { return needs_; }
  // nullptr where nobody has asked for one.
  const Validation* find(run::CheckpointId id) const;

  static void fields(auto& archive, auto& validations) {  // for base/archive.h
    archive("validations", validations.validations_);
    archive.added("succeeded", validations.succeeded_);
    archive.added("failed", validations.failed_);
    archive.added("last_error", validations.last_error_);
    archive.added("hopeless", validations.hopeless_);
  }

 private:
  Validation* present(run::CheckpointId id, std::int64_t attempt);
  void fail(run::CheckpointId id, const std::string& reason, Checkpoints& checkpoints, Actions& actions);
  void give_up(run::CheckpointId id, const std::string& reason, Checkpoints& checkpoints, Actions& actions);
  void settle(run::CheckpointId id, Validation::State state, Checkpoints& checkpoints, Actions& actions);
  void say_that_it_waits(run::CheckpointId id, const run::ResourceLedger& room, const Checkpoints& checkpoints,
                         Actions& actions);
  std::vector<run::CheckpointId> waiting() const;
  void skip_older(run::CheckpointId id, Checkpoints& checkpoints, Actions& actions);

  ValidationConfig config_;
  Resources needs_;
  std::map<run::CheckpointId, Validation> validations_;  // of checkpoints that exist
  std::int64_t succeeded_ = 0;                           // of all that have ended
  std::int64_t failed_ = 0;
  std::string last_error_ = {};                       // of those
  std::map<std::string, std::string> hopeless_ = {};  // functions that cannot succeed, and why
  bool has_said_that_it_waits_ = false;               // this controller; not part of the state
};

// How far a checkpoint has got; `validation` is its own, or nullptr.
ReportedCheckpointStatus status_of(const Validation* validation);

}  // namespace cadre::train
