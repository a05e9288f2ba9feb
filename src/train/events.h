// What can happen to a training run, and what it can do about it. Events go into Run::handle, actions come out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cadre/train.h"
#include "cadre/value.h"
#include "engine/engine.h"
#include "run/checkpoint_registry.h"
#include "run/resource_ledger.h"
#include "run/retry_delay.h"
#include "train/checkpoint_part.h"
#include "train/notices.h"

namespace cadre::train {

// Counts the checkpoints that were reported in a run, from 0.
using CheckpointNumber = std::int64_t;

// Time that the core waits for; the shell has the clock. One of each kind runs at most, or one for each checkpoint.
struct Timer {
  enum class Kind {
    settling,          // other ranks may say that they fail too, and why, after one has
    stopping,          // how long workers may take to stop
    retry,             // how long a run that fails again and again waits before it is tried again
    upload,            // before an upload that has failed is tried again
    validation,        // how long a validator may take
    validation_retry,  // before a validation is tried again that fails again and again
  };
  Kind kind = Kind::settling;
  std::int64_t attempt = 0;  // of an upload the checkpoint's number, of a validation its id
  bool operator==(const Timer&) const = default;
  bool is_of_checkpoint() const {
    return kind == Kind::upload || kind == Kind::validation || kind == Kind::validation_retry;
  }
};

// ---- Events. They carry everything that decisions depend on, so that a recorded sequence leads to the same state.

// A controller began: the first one, or another one after an interruption. No worker of an earlier one is left.
struct ControllerStarted {
  std::vector<run::CheckpointId> lost_checkpoints = {};  // that are not there any more, or damaged
  std::vector<CheckpointNumber> lost_uploads = {};       // pending ones of which something is not there any more
  Resources machine = {.cpus = 0};                       // what there is
  std::string hostname = {};                             // of its machine
};
// All ranks have reported.
struct GroupReported {
  std::int64_t attempt = 0;
  std::int64_t step = 0;
  Metrics metrics = {};  // of rank 0
  GroupCheckpoint checkpoint = {};
};
// The ranks do not report as they should, or one of them is missing.
struct GroupBroke {
  std::int64_t attempt = 0;
  std::string reason = {};
};
// The first function of the group is about to be called.
struct GroupBegan {
  std::int64_t attempt = 0;
};
// The resources that are there now hold so many workers, up to the most that are wanted.
struct ResourcesSeen {
  std::int64_t workers = 0;
  Resources machine = {.cpus = 0};
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
// Somebody asked for the run's end: ranks stop at their next report, for another controller to go on.
struct RunInterrupted {};
// The files of these checkpoints now survive a loss of power.
struct CheckpointsSynced {
  std::vector<run::CheckpointId> checkpoints = {};
};
// Everything of a pending checkpoint is where it can be committed.
struct CheckpointUploaded {
  CheckpointNumber number = 0;
};
struct UploadFailed {
  CheckpointNumber number = 0;
  std::string reason = {};
  run::TryAgain again = run::TryAgain::never;
};
// A function in a rank's worker that makes a checkpoint has come to its end.
struct PromiseEnded {
  Rank rank = 0;
  std::int64_t attempt = 0;
  PromiseEnd end = {};

  static void fields(auto& archive, auto& ended) {
    archive("rank", ended.rank);
    archive("attempt", ended.attempt);
    archive("end", ended.end);
  }
};
// A validator's function has returned.
struct ValidatorReturned {
  run::CheckpointId checkpoint = 0;
  std::int64_t attempt = 0;
  Metrics metrics = {};
};
struct ValidatorThrew {
  run::CheckpointId checkpoint = 0;
  std::int64_t attempt = 0;
  std::string message = {};
  bool is_hopeless = false;  // what it needs is not there for any validation of the run
};
// Its worker has ended.
struct ValidatorEnded {
  run::CheckpointId checkpoint = 0;
  std::int64_t attempt = 0;
  engine::Exit exit = {};
};
// What the run belongs to has taken the result of a ForwardResult.
struct ResultForwarded {
  std::int64_t attempt = 0;
  bool go_on = true;  // else the run is to end
};
using Event =
    std::variant<ControllerStarted, GroupReported, GroupBroke, FunctionReturned, FunctionThrew, WorkerEnded, TimerFired,
                 RunInterrupted, CheckpointsSynced, CheckpointUploaded, UploadFailed, PromiseEnded, ResultForwarded,
                 GroupBegan, ResourcesSeen, ValidatorReturned, ValidatorThrew, ValidatorEnded>;

// ---- Actions. The first group is part of the turn's transaction; everything else is done when that is committed.

enum class DecisionKind { launch, retry, finish, fail, stop, lose, resize, validate, settle_validation };

// Something was decided.
struct RecordDecision {
  DecisionKind kind = {};
  Dict data = {};
};
// The run's status, attempt or error changed.
struct SaveRun {};
// What ranks have reported becomes a checkpoint. Names are inside the run's directory.
struct CommitCheckpoint {
  run::CheckpointId id = 0;
  std::int64_t step = 0;
  std::vector<std::string> from = {};  // its parts; one that has the directory's name is where it is to be
  std::string directory = {};
};
struct MarkSynced {
  run::CheckpointId id = 0;
};
// A checkpoint that nobody needs: forgotten with the transaction, deleted after it.
struct DeleteCheckpoint {
  run::CheckpointId id = 0;
  std::string directory = {};
};

// The parts of a pending checkpoint are to be copied or sent to where they can be committed; CheckpointUploaded or
// UploadFailed follows.
struct UploadCheckpoint {
  CheckpointNumber number = 0;
  std::vector<CheckpointPart> parts = {};
  std::string directory = {};  // that it will be committed as
};
// What nobody needs any more: of a checkpoint that was given up, or the user's and copied.
struct RemoveDirectory {
  std::string path = {};  // whole, or inside the run's directory
};
// A result that nobody has seen yet.
struct ShowResult {
  std::int64_t step = 0;
  Metrics metrics = {};
  std::string checkpoint = {};           // directory; empty: none, or it is not committed yet
  std::string checkpoint_dir_name = {};  // that it has, or is to have; empty: none, or a function is to name it
};
// Starts a validator.
struct StartValidator {
  run::CheckpointId id = 0;
  std::int64_t attempt = 0;
  std::string checkpoint = {};  // directory
  WantedValidation wanted = {};
  run::Gpus gpus = {};
};
// Ends its worker by force.
struct KillValidator {
  run::CheckpointId id = 0;
  std::int64_t attempt = 0;
};
// A validation has come to its end.
struct ShowValidation {
  std::string checkpoint = {};  // directory
  ReportedCheckpointStatus status = {};
  Metrics metrics = {};  // of both
  Metrics reported = {};
  Metrics validated = {};
  std::string error = {};  // empty: none
};
// A group has failed: why, by rank; -1 is nobody's.
struct TellOfFailure {
  std::int64_t attempt = 0;
  std::int64_t workers = 0;
  std::map<Rank, std::string> causes = {};
  std::string error = {};  // all of them as one text
};
// One or more lines for the person who watches; `failure` is shown in any case.
struct Say {
  std::string text = {};
  bool failure = false;
};
// Starts all ranks.
struct LaunchGroup {
  std::int64_t attempt = 0;
  std::int64_t workers = 1;
  std::string checkpoint = {};       // directory to continue from; empty: from the beginning
  std::int64_t step = 0;             // to continue from
  std::vector<run::Gpus> gpus = {};  // of each rank
};
// To what the run belongs to (run/parent_run.h), before ranks are answered. ResultForwarded follows.
struct ForwardResult {
  std::int64_t attempt = 0;
  std::int64_t step = 0;
  Metrics metrics = {};
  std::string checkpoint = {};  // directory; empty: none

  static void fields(auto& archive, auto& result) {
    archive("attempt", result.attempt);
    archive("step", result.step);
    archive("metrics", result.metrics);
    archive("checkpoint", result.checkpoint);
  }
};
// To all ranks that wait in report().
struct AnswerGroup {
  std::int64_t attempt = 0;
  bool stop = false;
  std::string checkpoint = {};  // directory of the newest committed one; empty: there is none yet
};
// Ends one worker by force.
struct KillWorker {
  Rank rank = 0;
  std::int64_t attempt = 0;
};
struct StartTimer {
  Timer timer = {};
  double seconds = 0;
};
using Action = std::variant<RecordDecision, SaveRun, CommitCheckpoint, MarkSynced, DeleteCheckpoint, UploadCheckpoint,
                            RemoveDirectory, ShowResult, Say, LaunchGroup, AnswerGroup, KillWorker, StartTimer,
                            ForwardResult, TellOfFailure, StartValidator, KillValidator, ShowValidation>;
using Actions = std::vector<Action>;

}  // namespace cadre::train
