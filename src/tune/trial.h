// One trial, as the controller represents it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cadre/tune/result.h"
#include "cadre/tune/scheduler.h"
#include "cadre/value.h"
#include "checkpoint/checkpoint_registry.h"
#include "resources/cluster.h"

namespace cadre::tune {

// The state of the trial's worker.
enum class WorkerState {
  none,      // no process, or it has sent its last message
  busy,      // runs user code
  saving,    // like busy, asked to send the checkpoint of its last result
  waiting,   // blocked in report(), while the report is being handled
  parked,    // blocked in report() without resources, until its trial's turn has come
  stopping,  // told to stop, or will be with its next report, and unwinds
  killed,    // killed, and its end is not reported yet
};
inline bool runs_user_code(WorkerState state) { return state == WorkerState::busy || state == WorkerState::saving; }
inline bool is_blocked(WorkerState state) { return state == WorkerState::waiting || state == WorkerState::parked; }

// Returns true if a worker can change from one state to the other. Every state can change to `none`.
inline bool may_become(WorkerState from, WorkerState to) {
  using enum WorkerState;
  switch (to) {
    case none:
      return true;
    case busy:
      return from == none || is_blocked(from);  // started; told to go on
    case saving:
      return is_blocked(from);
    case waiting:
      return runs_user_code(from);  // has reported
    case parked:
      return from == waiting;
    case stopping:
      return runs_user_code(from) || is_blocked(from);
    case killed:
      return runs_user_code(from) || from == stopping;  // over a time limit
  }
  return false;
}

// The step that follows when the worker has sent the checkpoint that it was asked for.
enum class AfterSave {
  go_on,
  pause,
  stop,
  restart,  // in another process, with other resources or on another node
  decide,   // the scheduler is asked again
};

// The reason for the end of a trial.
enum class EndedBy {
  itself,      // its function returned, it reported `done`, or it failed
  its_stop,    // a stop criterion of its own
  all_stop,    // all trials were stopped: the time was used up, or a stopper or the user said so
  limit,       // its scheduler's limit, such as max_t
  early_stop,  // its scheduler has stopped it early, or the user
};

struct Failure {
  std::string cause = {};
  bool may_retry = true;    // false: trying again cannot help
  bool is_of_node = false;  // true: the worker was lost with its node
};

// Resources of one trial.
struct Needs {
  Resources total = {};
  double own_cpus = 1;                       // the part for its worker itself
  std::optional<Resources> of_workers = {};  // the part for workers that this worker starts; empty: it may start none
  // With such a part: the bundles, and where they are to be in a cluster. The trial's worker is where the first one is,
  // which is its own unless that is empty.
  std::vector<Resources> bundles = {};
  bool first_is_own = true;
  PlacementStrategy strategy = PlacementStrategy::pack;
  bool operator==(const Needs&) const = default;
};

// Holds the part of a trial that is on one node.
struct Share {
  resources::Place place = {};
  Resources held = {};
  std::optional<Resources> of_workers = {};  // the part for workers that its worker starts; empty: none there
  bool operator==(const Share&) const = default;
};

struct Trial {
  TrialIndex index = 0;
  std::string id = {};         // "00003"
  std::string tag = {};        // "3_lr=0.1000", from the first config
  Dict sampled = {};           // values drawn from the search space, by path
  std::string directory = {};  // name inside the experiment's directory

  TrialStatus status = TrialStatus::pending;
  Config config = {};
  std::optional<Config> first_config = {};  // its config before its first exploit; empty: it had none
  std::optional<Config> suggestion = {};    // its values from the searcher, if its config could not be made of them
  std::string error = {};                   // of the last failure
  std::int64_t failures = 0;                // counted failures, since the trial was made or taken up again
  std::int64_t restore_failures = 0;        // since its last report
  std::int64_t preemption_failures = 0;     // workers that were lost with their nodes, counted like failures
  std::int64_t futile_attempts = 0;         // consecutive failures without a new result
  bool backs_off = false;                   // true: pending, but waits for its retry timer
  bool was_cut_off = false;                 // true: pending, because it ran when the controller ended

  WorkerState worker = WorkerState::none;
  std::int64_t attempt = 0;            // workers started so far; the last of them is the trial's worker
  Needs needs = {};                    // as its trainable and its config say
  std::optional<Needs> changed = {};   // instead of them, by the scheduler: of its worker, or of its next one
  bool untold = false;                 // true: its worker does not know yet what it has
  std::optional<Resources> held = {};  // acquired; empty: none
  resources::NodeId node = 0;          // of its worker, or of its last one
  resources::Gpus gpus = {};           // used by its worker, also before it was parked
  // On each of its nodes, that of its worker first, also before it was parked. Empty: all of it is on one.
  std::vector<Share> shares = {};
  std::int64_t parked_since = 0;  // the experiment's count of pauses when the worker was parked; 0: not parked
  std::optional<checkpoint::CheckpointId> started_from = {};  // reference held while the worker lives
  std::string reported_checkpoint = {};                       // committed with the report that awaits its answer
  bool offers_checkpoint = false;            // true: the worker can still send a checkpoint of its last report
  std::optional<AfterSave> after_save = {};  // the step after the requested checkpoint of the last result
  bool takes_over = false;                   // true: the parked worker will get another checkpoint and config
  bool restoring = false;                    // true: the worker began with a checkpoint and has not reported yet
  std::optional<Failure> killed_for = {};    // why it was killed; empty: not for a failure
  bool stop_requested = false;               // by the user: it ends with its next report
  EndedBy ended_by = EndedBy::itself;        // set when its end is decided
  double time_total_s = 0;                   // up to its last report

  std::int64_t step = 0;  // of the last result in this lineage that counted
  Metrics last_result = {};
  std::optional<checkpoint::CheckpointId> latest_checkpoint = {};  // the trial continues from it; reference held
  std::int64_t checkpoints_made = 0;                               // for their names

  resources::Place place() const { return {node, gpus}; }
  bool is_on(resources::NodeId one) const {
    return node == one || std::ranges::any_of(shares, [&](const Share& share) { return share.place.node == one; });
  }
  const Config& config_at_first() const { return first_config ? *first_config : config; }
  const Needs& present_needs() const { return changed ? *changed : needs; }
  bool ended() const {
    return status == TrialStatus::terminated || status == TrialStatus::stopped || status == TrialStatus::error;
  }
};

// Returns the training_iteration of a result; 0 if it has none.
std::int64_t training_iteration(const Metrics& result);

}  // namespace cadre::tune
