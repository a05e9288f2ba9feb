// The events of a training run, which go into Run::handle, and the actions that come out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/retry_delay.h"
#include "cadre/train.h"
#include "cadre/value.h"
#include "checkpoint/checkpoint_registry.h"
#include "engine/engine.h"
#include "resources/cluster.h"
#include "train/checkpoint_part.h"
#include "train/notices.h"
#include "train/run_status.h"

namespace cadre::train {

// The number of a reported checkpoint in its run, from 0.
using CheckpointNumber = std::int64_t;

// A timer of the core; the shell has the clock. At most one of each kind runs, or one for each checkpoint.
struct Timer {
  enum class Kind {
    settling,          // after a rank has failed: lets other ranks report their failures and causes
    stopping,          // limit for workers to stop
    retry,             // delay before a run that keeps failing is retried
    upload,            // delay before a failed upload is retried
    validation,        // limit for a validator
    validation_retry,  // delay before a validation that keeps failing is retried
  };
  Kind kind = Kind::settling;
  std::int64_t attempt = 0;  // upload: the checkpoint's number; validation: the checkpoint's id
  bool operator==(const Timer&) const = default;
  // A timer of an attempt replaces that of an earlier attempt.
  std::pair<Kind, std::int64_t> key() const {
    const bool is_of_checkpoint = kind == Kind::upload || kind == Kind::validation || kind == Kind::validation_retry;
    return {kind, is_of_checkpoint ? attempt : 0};
  }
};

// ---- Events. They carry all inputs of decisions, so that a recorded sequence leads to the same state.

// A controller started: the first, or another one after an interruption. No worker of an earlier one is left.
struct ControllerStarted {
  std::vector<checkpoint::CheckpointId> lost_checkpoints = {};  // missing or damaged
  std::vector<CheckpointNumber> lost_uploads = {};              // pending ones with missing files
  Resources machine = {.cpus = 0};                              // total resources
  std::string hostname = {};                                    // of the controller's machine
  resources::NodeList nodes = {};                               // those of a cluster
};
using engine::NodeDraining;
using engine::NodeJoined;
using engine::NodeLeft;
// All ranks have reported.
struct GroupReported {
  std::int64_t attempt = 0;
  std::int64_t step = 0;
  Metrics metrics = {};  // of rank 0
  GroupCheckpoint checkpoint = {};
  std::vector<Metrics> rank_metrics =
      {};  // by rank, if there are callbacks; not recorded, because nothing depends on it
};
// The ranks' reports do not match, or a rank is missing.
struct GroupBroke {
  std::int64_t attempt = 0;
  std::string reason = {};
};
// A function of the group is about to be called, for the first time.
struct GroupBegan {
  std::int64_t attempt = 0;
};
// The number of workers that fit into the present resources of one machine, at most num_workers.max.
struct ResourcesSeen {
  std::int64_t workers = 0;
  Resources machine = {.cpus = 0};
  bool at_start = false;  // ControllerStarted follows, which starts a group
};
struct FunctionReturned {
  Rank rank = 0;
  std::int64_t attempt = 0;
  Value value = {};
};
struct FunctionThrew {
  Rank rank = 0;
  std::int64_t attempt = 0;
  std::string message = {};
};
struct WorkerEnded {
  Rank rank = 0;
  std::int64_t attempt = 0;
  engine::Exit exit = {};
};
struct TimerFired {
  Timer timer = {};
};
// The run was interrupted: ranks stop at their next report, and another controller can continue.
struct RunInterrupted {};
// The files of these checkpoints are synced to the disk.
struct CheckpointsSynced {
  std::vector<checkpoint::CheckpointId> checkpoints = {};
};
// All parts of a pending checkpoint are where they can be committed.
struct CheckpointUploaded {
  CheckpointNumber number = 0;
};
struct UploadFailed {
  CheckpointNumber number = 0;
  std::string reason = {};
  base::TryAgain again = base::TryAgain::never;
};
// A rank's worker has finished its part of a checkpoint in the background, or has failed to.
struct PromiseEnded {
  Rank rank = 0;
  std::int64_t attempt = 0;
  PromiseEnd end = {};
  bool operator==(const PromiseEnded&) const = default;
};
// A validator's function has returned.
struct ValidatorReturned {
  checkpoint::CheckpointId checkpoint = 0;
  std::int64_t attempt = 0;
  Metrics metrics = {};
};
struct ValidatorThrew {
  checkpoint::CheckpointId checkpoint = 0;
  std::int64_t attempt = 0;
  std::string message = {};
  bool is_hopeless = false;  // true if no validation of the run can get what it needs
};
// A validator's worker has ended.
struct ValidatorEnded {
  checkpoint::CheckpointId checkpoint = 0;
  std::int64_t attempt = 0;
  engine::Exit exit = {};
};
// The run's parent has received the result of a ForwardResult.
struct ResultForwarded {
  std::int64_t attempt = 0;
  bool go_on = true;  // false: the run shall end
};
// A report and its checkpoint are where the run is published, or the run is not published.
struct ReportPublished {
  std::int64_t attempt = 0;
  std::int64_t step = 0;
};
using Event = std::variant<ControllerStarted, GroupReported, GroupBroke, FunctionReturned, FunctionThrew, WorkerEnded,
                           TimerFired, RunInterrupted, CheckpointsSynced, CheckpointUploaded, UploadFailed,
                           PromiseEnded, ResultForwarded, GroupBegan, ResourcesSeen, ValidatorReturned, ValidatorThrew,
                           ValidatorEnded, NodeJoined, NodeDraining, NodeLeft, ReportPublished>;

// ---- Actions. The first group is part of the turn's transaction; all others are carried out after the commit.

enum class DecisionKind { launch, retry, finish, fail, stop, lose, resize, validate, finish_validation };

// Records a decision.
struct RecordDecision {
  DecisionKind kind = {};
  Dict data = {};
};
// Saves the state of the run, which has changed.
struct SaveRun {
  RunStatus status = RunStatus::initializing;
  std::int64_t attempt = 0;
  std::string error = {};  // of the last group that failed; empty: none
};
// Commits the ranks' parts as a checkpoint. Names are relative to the run's directory.
struct CommitCheckpoint {
  checkpoint::CheckpointId id = 0;
  std::int64_t step = 0;
  std::vector<std::string> from = {};  // its parts; a part named like the directory is already in place
  std::string directory = {};
};
struct MarkSynced {
  checkpoint::CheckpointId id = 0;
};
// Removes an unneeded checkpoint: from the store in the transaction, from the disk after it.
struct DeleteCheckpoint {
  checkpoint::CheckpointId id = 0;
  std::string directory = {};
};

// Copies or sends the parts of a pending checkpoint to where they can be committed; CheckpointUploaded or UploadFailed
// follows.
struct UploadCheckpoint {
  CheckpointNumber number = 0;
  std::vector<CheckpointPart> parts = {};
  std::string directory = {};  // name after the commit
};
// Removes an unneeded directory: a part of a dropped checkpoint, or a copied directory of the user's.
struct RemoveDirectory {
  std::string path = {};  // absolute, or relative to the run's directory
};
// Shows a new result.
struct ShowResult {
  std::int64_t step = 0;
  Metrics metrics = {};
  std::string checkpoint = {};             // directory; empty: none, or not committed yet
  std::string checkpoint_dir_name = {};    // present or future name; empty: none, or a function will choose it
  std::vector<Metrics> rank_metrics = {};  // by rank, if there are callbacks
};
// Starts a validator.
struct StartValidator {
  checkpoint::CheckpointId id = 0;
  std::int64_t attempt = 0;
  std::string checkpoint = {};  // directory
  WantedValidation wanted = {};
  resources::Place place = {};
  Resources machine = {};  // of its node
};
// Kills a validator's worker.
struct KillValidator {
  checkpoint::CheckpointId id = 0;
  std::int64_t attempt = 0;
};
// Shows the end of a validation.
struct ShowValidation {
  std::string checkpoint = {};  // directory
  std::int64_t step = 0;        // of its report
  ReportedCheckpointStatus status = {};
  Metrics metrics = {};  // reported and validated
  Metrics reported = {};
  Metrics validated = {};
  std::string error = {};  // empty: none
};
// Notifies callbacks that a group has failed: the causes by rank; -1: not a rank's.
struct TellOfFailure {
  std::int64_t attempt = 0;
  std::int64_t workers = 0;
  std::map<Rank, std::string> causes = {};
  std::string error = {};  // all causes as one text
};
// Prints one or more lines to the console; a `failure` is shown even if verbose is 0.
struct Say {
  std::string text = {};
  bool failure = false;
};
// Starts all ranks of a group.
struct LaunchGroup {
  std::int64_t attempt = 0;
  std::int64_t workers = 1;
  std::string checkpoint = {};                // directory to continue from; empty: start from the beginning
  std::int64_t step = 0;                      // step to continue from
  std::vector<resources::Place> places = {};  // by rank; those of a node are consecutive, in the order of the nodes
  std::map<engine::NodeId, Resources> machines = {};  // of these nodes
};
// Forwards a result to the run's parent (worker/parent_run.h), before ranks are answered. ResultForwarded follows.
struct ForwardResult {
  std::int64_t attempt = 0;
  std::int64_t step = 0;
  Metrics metrics = {};
  std::string checkpoint = {};  // directory; empty: none
  bool operator==(const ForwardResult&) const = default;
};
// Has what was committed published at once. ReportPublished follows.
struct AwaitPublication {
  std::int64_t attempt = 0;
  std::int64_t step = 0;
  bool operator==(const AwaitPublication&) const = default;
};
// Answers all ranks that wait in report().
struct AnswerGroup {
  std::int64_t attempt = 0;
  bool stop = false;
  // Directory of the newest committed one; empty: none yet, or ranks are told to stop before theirs is committed.
  std::string checkpoint = {};
};
// Kills one worker.
struct KillWorker {
  Rank rank = 0;
  std::int64_t attempt = 0;
};
struct StartTimer {
  Timer timer = {};
  double seconds = 0;
};
using Action =
    std::variant<RecordDecision, SaveRun, CommitCheckpoint, MarkSynced, DeleteCheckpoint, UploadCheckpoint,
                 RemoveDirectory, ShowResult, Say, LaunchGroup, AnswerGroup, KillWorker, StartTimer, ForwardResult,
                 TellOfFailure, StartValidator, KillValidator, ShowValidation, AwaitPublication>;
using Actions = std::vector<Action>;

}  // namespace cadre::train
