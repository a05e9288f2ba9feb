// The functional core of a training run: events in, actions out. No I/O, no clock, no randomness: the same events
// always lead to the same state and the same actions. The Controller is the shell around it.
//
// What holds after every event: there is one worker group at most, all of its ranks belong to one attempt, every
// checkpoint that the run may go on from exists, and pending ones were reported by the present group, or by the last
// one before the next begins.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/archive.h"
#include "cadre/train.h"
#include "run/resource_fields.h"
#include "train/checkpoints.h"
#include "train/events.h"
#include "train/validations.h"

namespace cadre::train {

enum class RunStatus {
  initializing,   // a controller has begun
  starved,        // there are resources for too few workers
  scheduling,     // a group is being started: its function has not begun in any rank
  running,        // it has
  failing,        // a rank of the group has failed, and the others are being ended
  waiting,        // for its next attempt
  resizing,       // the group is ended in good order, and another one of another size follows
  shutting_down,  // every rank's function has returned, and checkpoints are still on their way
  validating,     // all of them are committed, and validations are still to be finished
  finished,       // all is done
  failed,         // more often than it may
  aborted,        // somebody has interrupted it, and another controller goes on
};
// "INITIALIZING", "SCHEDULING", ...; starved is SCHEDULING too, failing and waiting are RESTARTING, validating is
// SHUTTING_DOWN, failed is ERRORED.
std::string to_string(RunStatus status);

// What a group has failed from; each kind has a budget of its own.
enum class FailureKind { function, start, preemption };

class Run {
 public:
  // The options must have passed check_options(). A run that belongs to something (run/parent_run.h) has its results
  // forwarded, and its ranks wait for that.
  explicit Run(const TrainerOptions& options, bool has_parent = false);

  // Takes one event; appends what is to be done, in order.
  void handle(const Event& event, Actions& actions);

  // Nothing is left to do, or, after an interruption, nothing runs any more.
  bool finished() const;
  bool interrupted() const { return interrupted_; }
  // By what it belongs to.
  bool ended_by_parent() const { return ended_by_parent_; }
  // Whether a report adds a result: its group has not failed meanwhile, and its step was not acknowledged before, in an
  // earlier attempt.
  bool counts(const GroupReported& event) const { return is_present(event.attempt) && event.step > step_; }
  // Whether what comes from a worker of this attempt still means something.
  bool is_present(std::int64_t attempt) const { return attempt == attempt_ && has_group(); }
  bool awaits(const Timer& timer) const;

  RunStatus status() const { return status_; }
  std::int64_t attempt() const { return attempt_; }
  std::int64_t world_size() const { return world_size_; }
  const std::string& error() const { return error_; }
  const Value& return_value() const { return return_value_; }
  const Checkpoints& checkpoints() const { return checkpoints_; }
  const Validations& validations() const { return validations_; }
  // Whether its functions have returned in all ranks.
  bool has_trained() const { return status_ == RunStatus::validating || status_ == RunStatus::finished; }
  // What a validation lacks as long as the group's workers have what they have; empty: nothing.
  std::string lack_of_validations() const;

  static void fields(auto& archive, auto& run) {  // for base/archive.h
    archive("status", run.status_);
    archive("attempt", run.attempt_);
    archive("capacity", run.capacity_);
    archive("world_size", run.world_size_);
    archive("step", run.step_);
    archive("checkpoints", run.checkpoints_);
    archive("validations", run.validations_);
    archive("machine", run.machine_);
    archive("group_gpus", run.group_gpus_);
    archive("answered_after", run.answered_after_);
    archive("function_failures", run.budgets_[0]);
    archive("start_failures", run.budgets_[1]);
    archive("preemption_failures", run.budgets_[2]);
    archive("begun", run.begun_);
    archive("workers", run.workers_);
    archive("ranks", run.ranks_);
    archive("broken", run.broken_);
    archive("return_value", run.return_value_);
    archive("error", run.error_);
    archive("interrupted", run.interrupted_);
    archive("told_to_stop", run.told_to_stop_);
    archive("reported_step", run.reported_step_);
    archive("to_forward", run.to_forward_);
    archive("ended_by_parent", run.ended_by_parent_);
  }

 private:
  // One worker of the present group.
  struct Member {
    enum class State {
      busy,
      returned,  // its function has
      failed,    // it has said so, or has died
      killed,    // by us
      gone,      // its process has ended
    };
    State state = State::busy;
    bool said_last_word = false;
    bool lost = false;  // its process ended without a word, and not by us: likely what others failed from
    std::optional<FailureKind> kind = {};  // of its failure, where that says more than that its function has failed
    std::string cause = {};                // of its failure

    static void fields(auto& archive, auto& member) {
      archive("state", member.state);
      archive("said_last_word", member.said_last_word);
      archive("lost", member.lost);
      archive("kind", member.kind);
      archive("cause", member.cause);
    }
  };

  void on(const ControllerStarted& event);
  void on(const GroupReported& event);
  void on(const GroupBegan& event);
  void on(const ResourcesSeen& event);
  void on(const GroupBroke& event);
  void on(const FunctionReturned& event);
  void on(const FunctionThrew& event);
  void on(const WorkerEnded& event);
  void on(const TimerFired& event);
  void on(const RunInterrupted& event);
  void on(const CheckpointsSynced& event);
  void on(const CheckpointUploaded& event);
  void on(const UploadFailed& event);
  void on(const PromiseEnded& event);
  void on(const ResultForwarded& event);
  void on(const ValidatorReturned& event);
  void on(const ValidatorThrew& event);
  void on(const ValidatorEnded& event);

  struct Budget {
    std::int64_t failures = 0;
    std::int64_t in_a_row = 0;  // without a new report in between

    static void fields(auto& archive, auto& budget) {
      archive("failures", budget.failures);
      archive("in_a_row", budget.in_a_row);
    }
  };

  void enter(RunStatus status);
  bool has_group() const;  // that has not failed
  bool all_have_returned() const;
  Budget& budget(FailureKind kind) { return budgets_[static_cast<std::size_t>(kind)]; }
  std::int64_t most_failures(FailureKind kind) const;
  FailureKind kind_of_failure() const;
  Member* present(Rank rank, std::int64_t attempt);
  // How many workers there could be instead; empty: there are as many, or too few resources.
  std::optional<std::int64_t> better_size() const;
  // Workers that there is room for beside running validators.
  std::int64_t room() const;
  // What is free beside the group, and taken by validators too.
  run::ResourceLedger free_beside_group() const;
  std::string commit_ready();
  void start_validations();
  void finish_when_validated();
  void launch();
  void begin_to_fail();
  void kill_all();
  void break_group(const std::string& reason);
  void interrupt();
  void forward_or_answer();
  void answer();
  bool is_saved() const;
  void uploads_went_on(const std::string& failure);
  bool waits_for_uploads() const;
  void go_on();
  void group_has_ended();
  void try_again_or_fail();
  std::string describe_failure() const;
  std::map<Rank, std::string> causes_of_failure() const;
  void record(DecisionKind kind, Dict data = {});

  WorkerRange range_;
  Resources worker_resources_;
  FailureConfig failure_config_;
  double stop_grace_s_;
  bool has_parent_;

  RunStatus status_ = RunStatus::initializing;
  std::int64_t attempt_ = 0;
  std::int64_t capacity_;    // workers that there are resources for, as far as is known
  std::int64_t world_size_;  // of the present group, or the last one
  std::int64_t step_ = 0;    // of the last report that counts
  Checkpoints checkpoints_;
  Validations validations_;
  Resources machine_ = {.cpus = 0};
  // Of the ranks of the present group, or the last one: they are kept for the next one until the run has trained.
  std::vector<run::Gpus> group_gpus_ = {};
  // Ranks wait in report() until this one and those before it are committed, or given up.
  std::optional<CheckpointNumber> answered_after_ = {};
  std::array<Budget, 3> budgets_ = {};  // by FailureKind
  bool begun_ = false;                  // the function, in any rank of the present group
  std::int64_t workers_ = 0;            // processes that have not ended
  std::vector<Member> ranks_ = {};      // of the present group
  std::string broken_ = {};             // why its ranks do not go together; empty: they do
  Value return_value_ = {};
  std::string error_ = {};
  bool interrupted_ = false;        // by somebody, until another controller begins
  bool told_to_stop_ = false;       // the present group was
  std::int64_t reported_step_ = 0;  // that ranks wait for the answer of
  // A result that counts; where its group failed before, it goes with the report that repeats it.
  std::optional<ForwardResult> to_forward_ = {};
  bool ended_by_parent_ = false;
  Actions* actions_ = nullptr;  // of the event being handled
};

}  // namespace cadre::train
