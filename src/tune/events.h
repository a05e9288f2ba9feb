// The events that can happen to an experiment, and the actions it can ask for. Experiment::handle maps events to
// actions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cadre/resources.h"
#include "cadre/tune/extension.h"
#include "channel/message.h"
#include "engine/engine.h"
#include "resources/cluster.h"
#include "tune/decision_kind.h"
#include "tune/trial.h"

namespace cadre::tune {

// A timer that the core has asked for; the clock is the shell's. At most one of each kind runs for each trial.
struct Timer {
  enum class Kind {
    running,   // limit for a worker without a report
    stopping,  // limit for a worker that was told to stop
    retry,     // delay before a trial that fails repeatedly is tried again
    barrier,   // limit for trials that wait for each other; belongs to the experiment, not to a trial
    budget,    // limit for the experiment
  };
  Kind kind = Kind::running;
  TrialIndex trial = 0;
  std::int64_t number = 0;  // the trial's attempt, or the barrier's number
  bool operator==(const Timer&) const = default;
  std::pair<Kind, TrialIndex> key() const { return {kind, trial}; }
};

// ---- Events. They carry everything that decisions depend on, so that a recorded sequence leads to the same state.

// A controller began: the first one, or another one after an interruption. Workers of earlier controllers are gone.
struct ControllerStarted {
  enum class Errored { leave, resume, restart };

  Resources resources = {};                                     // of all nodes
  Errored errored = Errored::leave;                             // what to do with failed trials
  std::vector<checkpoint::CheckpointId> lost_checkpoints = {};  // missing or damaged
  double running_time_s = 0;                                    // of earlier sessions, without the time between them
  resources::NodeList nodes = {};                               // those of a cluster
  Extension extension = {};                                     // options that are others from here on
};
using engine::NodeDraining;
using engine::NodeJoined;
using engine::NodeLeft;
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
// The worker was told to take over another checkpoint and config, and cannot.
struct WorkerDeclined {
  TrialIndex trial = 0;
  std::int64_t attempt = 0;
};
struct WorkerEnded {
  TrialIndex trial = 0;
  std::int64_t attempt = 0;
  engine::Exit exit = {};
  // On which a process of the trial ended that was not its worker, which was killed for that; empty: it was the worker.
  std::optional<resources::NodeId> elsewhere = {};
};
// The controller did not run for a while: it was stopped, or the machine slept.
struct TimeLost {
  double seconds = 0;
};
// The machine is about to run out of memory: a parked worker should end and free its own.
struct MemoryRunsShort {};
struct TimerFired {
  Timer timer = {};
};
// The user interrupted the experiment: trials stop at their next report, and a restore continues them.
struct ExperimentInterrupted {};
// Requests of the user to the running experiment (control/requests.h).
struct TrialStopRequested {
  TrialIndex trial = 0;
};
struct StopRequested {};
// Trials stop at their next report, and the controller stays.
struct PauseRequested {};
struct ResumeRequested {
  double running_time_s = 0;  // so far, without the pause
};
struct ConfigEnqueued {
  Config values = {};  // by path; those of the next trial
};
// The files of these checkpoints now survive a loss of power.
struct CheckpointsSynced {
  std::vector<checkpoint::CheckpointId> checkpoints = {};
};
// The searcher has answered AskSearcher: with values for the trial's config, with none before another trial ends, or
// with none any more.
struct Suggested {
  TrialIndex for_trial = 0;  // the next one; it does not exist yet
  std::optional<Config> values = {};
  bool finished = false;
  bool operator==(const Suggested&) const = default;
};
using Event = std::variant<ControllerStarted, ResultReported, FunctionReturned, FunctionThrew, WorkerDeclined,
                           WorkerEnded, TimerFired, ExperimentInterrupted, CheckpointsSynced, MemoryRunsShort, TimeLost,
                           Suggested, NodeJoined, NodeDraining, NodeLeft, TrialStopRequested, StopRequested,
                           PauseRequested, ResumeRequested, ConfigEnqueued>;

// ---- Actions. The first group is part of the turn's transaction; everything else is done when that is committed. They
// carry what they need of a trial's state, which may be another one when they are carried out; its id, tag and
// directory never change.

// A decision to record; "go on" is not recorded.
struct RecordDecision {
  DecisionKind kind = {};
  TrialIndex trial = 0;
  Dict data = {};
};
// Saves the state of a trial, which has changed.
struct SaveTrial {
  TrialIndex trial = 0;
  std::string id = {};
  TrialStatus status = TrialStatus::pending;
  std::int64_t attempt = 0;
  Config config = {};
  std::string tag = {};
  std::string directory = {};
  std::string error = {};
};
// A reported directory to turn into a checkpoint. Paths are relative to the experiment's directory.
struct CommitCheckpoint {
  checkpoint::CheckpointId id = 0;
  TrialIndex trial = 0;
  std::int64_t step = 0;
  std::string from = {};
  std::string directory = {};
};
// A checkpoint to record as synced: it survives a loss of power.
struct MarkSynced {
  checkpoint::CheckpointId id = 0;
};
// A checkpoint that is no longer needed: removed from the store in the transaction, deleted after it.
struct DeleteCheckpoint {
  checkpoint::CheckpointId id = 0;
  std::string directory = {};
};

// A reported directory to delete: its report came too late.
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
// A trial that continues from another one.
struct LogExploit {
  TrialIndex target = 0;
  TrialIndex donor = 0;
  std::int64_t target_iteration = 0;
  std::int64_t donor_iteration = 0;  // of the checkpoint that the target continues from
  Config donor_config = {};
  Config new_config = {};
};
// A trial that has terminated, or failed for good.
struct LogEnd {
  TrialIndex trial = 0;
  TrialStatus status = TrialStatus::terminated;
  Config config = {};
  Metrics last_result = {};
  std::string error = {};
};
struct LogError {
  TrialIndex trial = 0;
  std::int64_t attempt = 0;
  std::int64_t iteration = 0;  // of the last result
  std::string message = {};
};
// One or more lines for the user.
struct Say {
  std::string text = {};
};
struct Launch {
  TrialIndex trial = 0;
  std::int64_t attempt = 0;
  Config config = {};
  std::string checkpoint = {};  // directory to continue from, relative to the experiment's; empty: from the beginning
  Metrics checkpoint_metrics = {};
  std::int64_t step = 0;  // training continues after this step
  Needs needs = {};
  resources::Place place = {};
  Resources machine = {};                // of its node
  std::vector<Share> shares = {};        // as the trial has them
  std::vector<Resources> machines = {};  // of each share's node
};
// Like Launch, for the trial's present worker, which waits for an answer.
struct TakeOver {
  Launch start = {};
};
struct AnswerReport {
  TrialIndex trial = 0;
  std::int64_t attempt = 0;
  channel::Verdict verdict = channel::Verdict::go_on;
  // Committed directory of the report that is answered, relative to the experiment's; empty: none
  std::string checkpoint = {};
  std::optional<Needs> needs = {};  // what the worker has from now on; empty: as before
};
// Kills a worker.
struct KillWorker {
  TrialIndex trial = 0;
  std::int64_t attempt = 0;
};
// Starts or restarts a timer.
struct StartTimer {
  Timer timer = {};
  double seconds = 0;
};
// Asks the searcher, which stays as it is until the event Suggested.
struct AskSearcher {
  TrialIndex trial = 0;
};
using Action = std::variant<RecordDecision, SaveTrial, CommitCheckpoint, DeleteCheckpoint, DiscardDirectory, LogResult,
                            LogExploit, LogEnd, LogError, Say, Launch, TakeOver, AnswerReport, KillWorker, StartTimer,
                            MarkSynced, AskSearcher>;
using Actions = std::vector<Action>;

// Decisions that contain answers of the searcher, of stoppers and of the program's functions, sorted by trial.
using RecordedAnswers = std::vector<RecordDecision>;

// Returns the action that saves the trial's present state.
inline SaveTrial state_of(const Trial& trial) {
  return {.trial = trial.index,
          .id = trial.id,
          .status = trial.status,
          .attempt = trial.attempt,
          .config = trial.config,
          .tag = trial.tag,
          .directory = trial.directory,
          .error = trial.error};
}

}  // namespace cadre::tune
