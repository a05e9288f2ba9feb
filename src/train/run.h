// The functional core of a training run: events in, actions out. No I/O, no clock, no randomness: the same events
// always lead to the same state and the same actions. The Controller is the shell around it.
//
// Invariants after every event: there is at most one worker group; all its ranks belong to one attempt; every
// checkpoint that the run may continue from exists; pending ones were reported by the present group, or by the last
// one before the next begins.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cadre/train.h"
#include "train/checkpoints.h"
#include "train/events.h"
#include "train/run_status.h"
#include "train/validations.h"

namespace cadre::train {

// The kind of a group's failure; each has its own budget.
enum class FailureKind { function, start, preemption };

class Run {
 public:
  // Names for control/turns.h and control/replay.h.
  using Event = train::Event;
  using Actions = train::Actions;
  using Timer = train::Timer;
  using TimerFired = train::TimerFired;
  using Interrupted = train::RunInterrupted;
  using CheckpointsSynced = train::CheckpointsSynced;
  using RecordDecision = train::RecordDecision;
  using CommitCheckpoint = train::CommitCheckpoint;
  using MarkSynced = train::MarkSynced;
  using DeleteCheckpoint = train::DeleteCheckpoint;
  using StartTimer = train::StartTimer;

  // The options must have passed check_options(). A run with a parent (worker/parent_run.h) forwards its results, and
  // its ranks wait for the reply.
  explicit Run(const TrainerOptions& options, bool has_parent = false);

  // Handles one event; appends the resulting actions, in order.
  void handle(const Event& event, Actions& actions);

  // Returns true if all later events have the same effects.
  bool operator==(const Run&) const = default;

  // Returns true if nothing is left to do or, after an interruption, nothing is running.
  bool finished() const;
  bool interrupted() const { return interrupted_; }
  // Returns true if the parent has ended the run.
  bool ended_by_parent() const { return ended_by_parent_; }
  // Returns true if a report adds a result: its group has not failed, and its step is higher than that of any
  // acknowledged report of an earlier attempt.
  bool counts(const GroupReported& event) const { return is_present(event.attempt) && event.step > step_; }
  // Returns true if messages from a worker of this attempt still count.
  bool is_present(std::int64_t attempt) const { return attempt == attempt_ && has_group(); }
  bool awaits(const Timer& timer) const;

  RunStatus status() const { return status_; }
  std::int64_t attempt() const { return attempt_; }
  std::int64_t world_size() const { return world_size_; }
  const std::string& error() const { return error_; }
  const Value& return_value() const { return return_value_; }
  const Checkpoints& checkpoints() const { return checkpoints_; }
  const Validations& validations() const { return validations_; }
  // Returns true if the function has returned in all ranks and all checkpoints are committed.
  bool has_trained() const { return status_ == RunStatus::validating || status_ == RunStatus::finished; }
  // Returns what a validation lacks while the group's workers hold their resources; empty: nothing.
  std::string lack_of_validations() const;
  // Returns what workers and validations need that wait because no node has room for them. A run with a range of
  // workers always waits for more of them.
  std::vector<engine::Demand> demand() const;

 private:
  // One worker of the present group.
  struct Member {
    enum class State {
      busy,
      returned,  // its function has returned
      failed,    // its function threw, or its report was refused
      killed,    // by the core
    };
    State state = State::busy;
    bool said_last_word = false;
    bool lost = false;  // its process died without a message and was not killed: likely the cause of other failures
    std::optional<FailureKind> kind = {};  // of its failure; empty: its function failed, or it has not failed
    std::string cause = {};                // of its failure
    bool operator==(const Member&) const = default;
  };

  void on(const ControllerStarted& event);
  void on(const GroupReported& event);
  void on(const GroupBegan& event);
  void on(const ResourcesSeen& event);
  void on(const NodeJoined& event);
  void on(const NodeDraining& event);
  void on(const NodeLeft& event);
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
  void on(const ReportPublished& event);
  void on(const ValidatorReturned& event);
  void on(const ValidatorThrew& event);
  void on(const ValidatorEnded& event);

  struct Budget {
    std::int64_t failures = 0;
    std::int64_t in_a_row = 0;  // without a new result in between
    bool operator==(const Budget&) const = default;
  };

  void enter(RunStatus status);
  bool has_group() const;  // true if there is one that has not failed
  bool all_have_returned() const;
  Budget& budget(FailureKind kind) { return budgets_[static_cast<std::size_t>(kind)]; }
  std::int64_t most_failures(FailureKind kind) const;
  FailureKind kind_of_failure() const;
  Member* present(Rank rank, std::int64_t attempt);
  // Returns the size that the group should have instead, which may be the present one if a node drains that it is on;
  // empty: it stays as it is, or the resources are too few.
  std::optional<std::int64_t> better_size() const;
  // Returns the number of workers that fit beside running validators.
  std::int64_t room() const;
  bool is_over() const;
  bool validates() const;
  // Returns the resources that the group does not hold; running validators are not subtracted.
  resources::Cluster free_beside_group() const;
  std::int64_t fitting(const resources::Cluster& room) const;
  std::vector<resources::Place> place_group() const;
  bool is_leaving() const;  // true if a node drains that the group is on
  void leave(engine::NodeId node);
  void nodes_changed();
  std::string commit_ready();
  void start_validations();
  void finish_when_validated();
  void launch();
  void begin_to_fail();
  void kill_all();
  void break_group(const std::string& reason);
  void interrupt();
  void saved();
  void stop_waiting();
  void forward_or_answer();
  void answer();
  void stop_ranks_that_wait_in_vain();
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
  PlacementStrategy strategy_;
  FailureConfig failure_config_;
  double stop_grace_s_;
  bool has_parent_;

  RunStatus status_ = RunStatus::initializing;
  std::int64_t attempt_ = 0;
  std::int64_t capacity_;    // workers that fit into the resources, as far as known
  std::int64_t world_size_;  // of the present or last group
  std::int64_t step_ = 0;    // of the last report that counts
  Checkpoints checkpoints_;
  Validations validations_;
  resources::Cluster cluster_ = {};  // the nodes; what is in use follows from the group and the validations
  // Places of the present or last group, by rank. Reserved for the next group until the run has trained.
  std::vector<resources::Place> group_places_ = {};
  // Ranks wait in report() until this checkpoint and all earlier ones are committed or dropped.
  std::optional<CheckpointNumber> answered_after_ = {};
  // Say that the present report returns only when it was published, and that it waits for that now.
  bool is_to_be_published_ = false;
  bool awaits_publication_ = false;
  std::array<Budget, 3> budgets_ = {};  // by FailureKind
  bool begun_ = false;                  // the function has begun in a rank of the present group
  std::int64_t workers_ = 0;            // processes that have not ended
  std::vector<Member> ranks_ = {};      // of the present group
  std::string broken_ = {};             // why the ranks' reports do not match; empty: they do
  Value return_value_ = {};
  std::string error_ = {};
  bool interrupted_ = false;        // until another controller starts
  std::int64_t reported_step_ = 0;  // step of the report that ranks wait for an answer to
  // A result that counts but was not forwarded; if its group failed, it is forwarded with the report that repeats it.
  std::optional<ForwardResult> to_forward_ = {};
  bool ended_by_parent_ = false;
  Actions* actions_ = nullptr;  // of the event being handled
};

}  // namespace cadre::train
