// One trial, as the controller knows it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cadre/tune/result.h"
#include "cadre/value.h"
#include "run/checkpoint_registry.h"
#include "run/resource_ledger.h"

namespace cadre::tune {

using TrialIndex = std::uint32_t;

// What the trial's worker is doing.
enum class WorkerState {
  none,      // there is no process, or it has nothing more to say
  busy,      // it runs user code
  waiting,   // it is blocked in report(), until it is answered
  stopping,  // it was told to stop, or will be with its next report, and unwinds
  killed,    // it was ended by force, and its end is awaited
};

// What goes on when the worker has sent the checkpoint that it was asked for.
enum class AfterSave {
  go_on,
  pause,
  stop,
  decide,  // the scheduler is asked again
};

struct Failure {
  std::string cause = {};
  bool may_retry = true;  // trying again can help
};

// Resources of one trial.
struct Needs {
  Resources total = {};
  double own_cpus = 1;                       // the part of its worker itself
  std::optional<Resources> of_workers = {};  // the part for workers that this one starts; empty: it may start none
  bool operator==(const Needs&) const = default;

  static void fields(auto& archive, auto& needs) {  // for base/archive.h
    archive("total", needs.total);
    archive("own_cpus", needs.own_cpus);
    archive("of_workers", needs.of_workers);
  }
};

struct Trial {
  TrialIndex index = 0;
  std::string id = {};         // "00003"
  std::string tag = {};        // "3_lr=0.1000", as it was when the trial was made
  Dict sampled = {};           // what was drawn from the search space, by path
  std::string directory = {};  // name inside the experiment's directory

  TrialStatus status = TrialStatus::pending;
  Config config = {};
  std::string error = {};             // of the last failure
  std::int64_t failures = 0;          // that count, since the trial began or was taken up again
  std::int64_t restore_failures = 0;  // since its last report
  std::int64_t futile_attempts = 0;   // that failed one after the other without a new result
  bool backs_off = false;             // it is pending, and not to be started before its timer has fired

  WorkerState worker = WorkerState::none;
  std::int64_t attempt = 0;  // workers started so far; the last of them is the trial's worker
  Needs needs = {};          // from its next worker on
  bool holds_resources = false;
  Resources held = {};            // when it holds them: as they were needed then
  run::Gpus gpus = {};            // that its worker uses, or has used before it was parked
  std::int64_t parked_since = 0;  // the experiment's count of pauses when the worker was parked; 0: it is not
  std::optional<run::CheckpointId> started_from = {};  // referenced while the worker lives
  std::string reported_checkpoint = {};                // committed with the report that the worker waits for
  bool offers_checkpoint = false;            // its last report, which had none, can be sent once more with one
  std::optional<AfterSave> after_save = {};  // of the last result, which has no checkpoint and is to get one
  bool takes_over = false;                   // its worker, which waits, is to go on with another checkpoint and config
  bool restoring = false;                    // the worker began with a checkpoint and has not reported yet
  std::optional<Failure> killed_for = {};    // what it was ended for, if that is a failure
  double time_total_s = 0;                   // up to its last report

  std::int64_t step = 0;  // of the last result in this lineage that counted
  Metrics last_result = {};
  std::optional<run::CheckpointId> latest_checkpoint = {};  // what the trial continues from; referenced
  std::int64_t checkpoints_made = 0;                        // for their names

  bool ended() const { return status == TrialStatus::terminated || status == TrialStatus::error; }
};

// training_iteration of a result, 0 where there is none.
std::int64_t training_iteration(const Metrics& result);

}  // namespace cadre::tune
