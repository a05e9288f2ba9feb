// What can happen to an experiment, and what it can do about it. Events go into Experiment::handle, actions come out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cadre/resources.h"
#include "channel/message.h"
#include "engine/engine.h"
#include "tune/decision_kind.h"
#include "tune/explore.h"
#include "tune/trial.h"

namespace cadre::tune {

// Time that the core waits for; the shell has the clock. Each kind runs at most once for each trial.
struct Timer {
  enum class Kind {
    running,   // how long a worker may run without a report
    stopping,  // how long it may take to stop
    retry,     // how long a trial that fails again and again waits before it is tried again
    barrier,   // how long trials wait for each other; of the experiment, not of a trial
    budget,    // how long the experiment may run
  };
  Kind kind = Kind::running;
  TrialIndex trial = 0;
  std::int64_t number = 0;  // of the trial's attempt; of the barrier
  bool operator==(const Timer&) const = default;
};

// ---- Events. They carry everything that decisions depend on, so that a recorded sequence leads to the same state.

// A controller began: the first one, or another one after an interruption. No worker of an earlier one is left.
struct ControllerStarted {
  enum class Errored { leave, resume, restart };

  Resources resources = {};                              // of all nodes
  Errored errored = Errored::leave;                      // what becomes of trials that have failed
  std::vector<run::CheckpointId> lost_checkpoints = {};  // that are not there any more, or damaged
  double running_time_s = 0;                             // of the experiment before, without the time between
};
struct ResultReported {
  TrialIndex trial = 0;
  std::int64_t attempt = 0;
  channel::Report report = {};
};
struct FunctionReturned {
  TrialIndex trial = 0;
  std::int64_t attempt = 0;
};
struct FunctionThrew {
  TrialIndex trial = 0;
  std::int64_t attempt = 0;
  std::string message = {};
};
// It was told to take over another checkpoint and config, and cannot.
struct WorkerDeclined {
  TrialIndex trial = 0;
  std::int64_t attempt = 0;
};
struct WorkerEnded {
  TrialIndex trial = 0;
  std::int64_t attempt = 0;
  engine::Exit exit = {};
};
// So many seconds went by in which the controller did not run: it was stopped, or the machine slept.
struct TimeLost {
  double seconds = 0;
};
// The machine is about to run out of memory: a worker that only waits is to give its own back.
struct MemoryRunsShort {};
struct TimerFired {
  Timer timer = {};
};
// Somebody asked for the experiment's end: trials stop at their next report, for another controller to continue them.
struct ExperimentInterrupted {};
// The files of these checkpoints now survive a loss of power.
struct CheckpointsSynced {
  std::vector<run::CheckpointId> checkpoints = {};
};
using Event =
    std::variant<ControllerStarted, ResultReported, FunctionReturned, FunctionThrew, WorkerDeclined, WorkerEnded,
                 TimerFired, ExperimentInterrupted, CheckpointsSynced, MemoryRunsShort, TimeLost>;

// ---- Actions. The first group is part of the turn's transaction; everything else is done when that is committed.

// Something was decided; "go on" is not recorded.
struct RecordDecision {
  DecisionKind kind = {};
  TrialIndex trial = 0;
  Dict data = {};
};
// A trial's status, config or error changed, or the worker of one that had ended is gone.
struct SaveTrial {
  TrialIndex trial = 0;
};
// A reported directory becomes a checkpoint. Paths are inside the experiment's directory.
struct CommitCheckpoint {
  run::CheckpointId id = 0;
  TrialIndex trial = 0;
  std::int64_t step = 0;
  std::string from = {};
  std::string directory = {};
};
// A checkpoint that survives a loss of power, for the record.
struct MarkSynced {
  run::CheckpointId id = 0;
};
// A checkpoint that nobody needs: forgotten with the transaction, deleted after it.
struct DeleteCheckpoint {
  run::CheckpointId id = 0;
  std::string directory = {};
};

// A reported directory that is not wanted: the report came too late.
struct DiscardDirectory {
  std::string directory = {};
};
struct LogResult {
  TrialIndex trial = 0;
  Metrics metrics = {};
  std::string checkpoint_dir_name = {};  // empty: none
  bool done = false;
  Config config = {};
};
// A trial continues from another one.
struct LogExploit {
  TrialIndex target = 0;
  TrialIndex donor = 0;
  std::int64_t target_iteration = 0;
  std::int64_t donor_iteration = 0;  // of the checkpoint that the target continues from
  Config donor_config = {};
  Config new_config = {};
};
// A trial has terminated, or failed for good.
struct LogEnd {
  TrialIndex trial = 0;
};
struct LogError {
  TrialIndex trial = 0;
  std::int64_t attempt = 0;
  std::string message = {};
};
// One or more lines for the person who watches.
struct Say {
  std::string text = {};
};
struct Launch {
  TrialIndex trial = 0;
  std::int64_t attempt = 0;
  Config config = {};
  std::string checkpoint = {};  // directory to continue from, inside the experiment's; empty: from the beginning
  Metrics checkpoint_metrics = {};
  std::int64_t step = 0;  // to continue from
  run::Gpus gpus = {};
};
// The same for the worker that the trial has, which waits for an answer.
struct TakeOver {
  Launch start = {};
};
struct AnswerReport {
  TrialIndex trial = 0;
  std::int64_t attempt = 0;
  channel::Verdict verdict = channel::Verdict::go_on;
  // Committed directory of the report that is answered, inside the experiment's; empty: none
  std::string checkpoint = {};
};
// Ends a worker by force.
struct KillWorker {
  TrialIndex trial = 0;
  std::int64_t attempt = 0;
};
// Starts a timer, or starts it anew.
struct StartTimer {
  Timer timer = {};
  double seconds = 0;
};
using Action =
    std::variant<RecordDecision, SaveTrial, CommitCheckpoint, DeleteCheckpoint, DiscardDirectory, LogResult, LogExploit,
                 LogEnd, LogError, Say, Launch, TakeOver, AnswerReport, KillWorker, StartTimer, MarkSynced>;
using Actions = std::vector<Action>;

}  // namespace cadre::tune
