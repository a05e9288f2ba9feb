// The functional core of an experiment: events in, actions out. No I/O, no clock, no randomness except from the seed:
// the same events always lead to the same state and the same actions, given the same answers of the searcher, of
// stoppers that end the experiment and of the program's functions, which are recorded. The Controller is the shell
// around it.
//
// Invariants after every event: a trial has at most one worker that counts, the resources in use are at most those that
// exist, an ended trial runs again only if a restore asks for it, and every checkpoint that a trial may continue from
// exists.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cadre/stored.h"
#include "cadre/tune/scheduler.h"
#include "cadre/tune/tuner.h"
#include "checkpoint/checkpoint_registry.h"
#include "resources/cluster.h"
#include "tune/asked_searcher.h"
#include "tune/events.h"
#include "tune/resource_needs.h"
#include "tune/searchers/variant_generator.h"
#include "tune/stoppers/stopper_set.h"
#include "tune/trial.h"

namespace cadre::tune {

class Experiment final : private Population {
 public:
  // Names for control/turns.h and control/replay.h.
  using Event = tune::Event;
  using Actions = tune::Actions;
  using Timer = tune::Timer;
  using TimerFired = tune::TimerFired;
  using TimeLost = tune::TimeLost;
  using Interrupted = tune::ExperimentInterrupted;
  using CheckpointsSynced = tune::CheckpointsSynced;
  using RecordDecision = tune::RecordDecision;
  using CommitCheckpoint = tune::CommitCheckpoint;
  using MarkSynced = tune::MarkSynced;
  using DeleteCheckpoint = tune::DeleteCheckpoint;
  using StartTimer = tune::StartTimer;

  // `trainable` and `options` must have passed check_options().
  Experiment(Trainable trainable, TunerOptions options);

  // Returns a new Experiment of the same trainable and options, those before any extension.
  Experiment anew() const { return Experiment(trainable_, first_options_); }

  // Handles one event; appends the resulting actions, in order. In a replay, `recorded` has the answers of the
  // searcher, of stoppers and of the program's functions: they are not asked again.
  void handle(const Event& event, Actions& actions, const RecordedAnswers* recorded = nullptr);

  // `save` returns everything that later decisions depend on, except the ended trials, which save_trial() saves one by
  // one. `load` restores it into a new Experiment of the same trainable and options; it calls `ended_trial` in
  // ascending order.
  Value save() const;
  Value save_trial(TrialIndex index) const;
  void load(const Value& saved, const std::function<Value(TrialIndex)>& ended_trial);

  // Returns true if nothing is left to do or, after an interruption, no worker is left.
  bool finished() const;
  bool interrupted() const { return state_.interrupted && !state_.paused; }
  bool paused() const { return state_.paused; }
  // Returns true if all trials are being ended.
  bool ends() const { return state_.phase != Phase::running; }
  // Returns the latest checkpoints of trials that have not terminated: they, or others in an exploit, continue from
  // them. `of_extended`: also of those that an extension may continue.
  std::vector<checkpoint::CheckpointId> needed_checkpoints(bool of_extended = false) const;
  // Returns true if the core still waits for the timer; otherwise the shell need not send an event.
  bool awaits(const Timer& timer) const;
  // Returns true if the result is new, and its worker was not told to stop.
  bool counts(const ResultReported& event) const;
  // Returns true if the report brings the checkpoint of a result that counts already.
  bool is_saved_result(const ResultReported& event) const;
  // Returns true if the step of this report was acknowledged before: in an earlier attempt of its trial, or in this one
  // before its checkpoint was asked for.
  bool is_repeated(const ResultReported& event) const;

  const std::vector<Trial>& trials() const { return trials_; }
  const std::set<TrialIndex>& live_trials() const override { return live_; }  // not ended
  const checkpoint::CheckpointRegistry& checkpoint_registry() const { return checkpoints_; }
  // Returns what trials need that wait because no node has room for them, as many as may run at once.
  std::vector<engine::Demand> demand();
  // Returns the number of workers that wait for their trial to be scheduled.
  std::int64_t parked_workers() const { return std::ssize(parked_); }
  std::string resource_usage() const { return cluster_.usage(); }
  const resources::Cluster& cluster() const { return cluster_; }
  std::string scheduler_state() const { return scheduler_->debug_string(); }
  std::string searcher_state() const { return searcher_.get().debug_string(); }
  const Searcher& searcher() const { return searcher_.get(); }  // for suggest() after AskSearcher
  std::int64_t trials_to_come() const override;
  // Returns the number of draws from the search space that trials were made of, the present one with all its grids.
  std::int64_t samples_made() const { return variants_.samples_of(std::ssize(trials_)); }

 private:
  enum class Phase {
    running,
    stopping,     // every running trial ends with its next report
    failed_fast,  // one trial's failure has ended all others
  };
  // State that neither follows from the options nor belongs to a trial, the scheduler, a stopper or a checkpoint.
  struct State {
    Resources resources = {};        // of all nodes
    resources::NodeList nodes = {};  // only in a stored state; those of a cluster
    std::int64_t workers = 0;        // number of processes that have not ended
    std::int64_t pauses = 0;         // number of times a worker was parked
    Phase phase = Phase::running;
    bool interrupted = false;                  // until the next controller begins
    bool paused = false;                       // true: interrupted until the user asks to go on
    std::vector<Config> queue = {};            // configs that the user has enqueued, for the next trials
    std::map<TrialIndex, Config> queued = {};  // those that have become trials
    Extension extension = {};                  // all that differs from the first options
    VariantBegin variants = {};
    bool warned = false;  // true: the first result was checked for metrics of the options
    bool said_who_cannot_restart = false;
  };
  class Runnable;
  // The Experiment, without the ended trials.
  struct Saved {
    TrialIndex trials = 0;
    std::map<TrialIndex, Value> live = {};
    Value scheduler = {};
    Value searcher = {};
    AskedSearcher::State asked = {};
    Value stoppers = {};
    checkpoint::RegistryState checkpoints = {};
    State rest = {};
  };

  // Population
  TrialView trial(TrialIndex index) const override { return view_of(trials_.at(index)); }
  bool anyone_waits() const override;
  bool can_save(TrialIndex index) const override { return can_save(trials_.at(index)); }
  const Resources& machine() const override { return state_.resources; }
  const std::set<TrialIndex>& trials_with_resources() const override { return holders_; }
  std::int64_t contenders() const override;

  TrialView view_of(const Trial& trial) const { return {trial, checkpoints_}; }
  bool can_save(const Trial& trial) const;

  void on(const ControllerStarted& event);
  void on(const ResultReported& event);
  void on(const FunctionReturned& event);
  void on(const FunctionThrew& event);
  void on(const WorkerDeclined& event);
  void on(const WorkerEnded& event);
  void on(const TimerFired& event);
  void on(const ExperimentInterrupted& event);
  void on(const CheckpointsSynced& event);
  void on(const MemoryRunsShort& event);
  void on(const TimeLost&) {}  // timers do not count lost time
  void on(const Suggested& event);
  void on(const TrialStopRequested& event);
  void on(const StopRequested& event);
  void on(const PauseRequested& event);
  void on(const ResumeRequested& event);
  void on(const ConfigEnqueued& event);
  void stop_by_request(Trial& trial);
  void interrupt_all();
  void start_budget(double running_time_s);
  void on(const NodeJoined& event);
  void on(const NodeDraining& event);
  void on(const NodeLeft& event);
  void on_last_word(Trial& trial, std::optional<Failure> failure);
  void say_if_only_failures_are_left();
  void drop_lost(checkpoint::CheckpointId checkpoint);
  void resume_errored(Trial& trial, bool anew);
  void extend(const Extension& extension);
  void restore_options(const State& saved);
  void make_searcher();
  void make_scheduler();
  bool is_extended(const Trial& trial, const Extension& extension) const;
  bool is_at_limit(const Trial& trial) const;
  void end_by_stop(Trial& trial);

  // Returns the trial of an event if the event comes from the trial's present worker; nullptr if that was replaced or
  // ended.
  Trial* present(TrialIndex index, std::int64_t attempt);
  const Trial* present(TrialIndex index, std::int64_t attempt) const;

  std::string commit_checkpoint(Trial& trial, const channel::Report& report);
  Decision decide(Trial& trial, const Metrics& metrics);
  bool stop_function_ends(const Trial& trial, const Metrics& metrics);
  void ask_to_stop_all(const Trial& trial, std::string_view after);
  Decision ask_scheduler(Trial& trial, const Metrics& metrics);
  void carry_out(Trial& trial, const Decision& decision);
  std::optional<AfterSave> what_waits_for_a_checkpoint(const Trial& trial, Decision::Kind kind) const;
  bool is_saved(const Trial& trial) const;
  bool saves_at_end() const;
  void ask_to_save(Trial& trial, AfterSave then);
  void on_saved(Trial& trial);
  void carry_out(const Exploit& exploit);
  bool change_resources(Trial& trial, const ResourceChange& change);
  void restart(Trial& trial);
  void stop_early(Trial& trial);
  void pause(Trial& trial);
  void set_worker(Trial& trial, WorkerState state);
  bool can_park(const Trial& trial) const;
  bool would_keep_too_much(const Trial& trial) const;
  bool is_leaving(const Trial& trial) const;
  void park(Trial& trial);
  void unpark_the_coldest();
  void fail(Trial& trial, Failure failure);
  void end(Trial& trial, TrialStatus status);
  void end_everybody();
  void stop_all();
  void try_again(Trial& trial);
  void make_pending(Trial& trial);
  void interrupt(Trial& trial);
  void set_aside(Trial& trial);
  void postpone(Trial& trial, const Failure& failure);
  void lose_node(Trial& trial, Failure failure);
  void wait_before_retry(Trial& trial, double delay_s);
  void tell_to_stop(Trial& trial);
  void kill(Trial& trial, std::optional<Failure> failure);
  std::optional<double> time_left(const Trial& trial) const;
  void limit_running(const Trial& trial);
  void worker_is_done(Trial& trial);
  void acquire_resources(Trial& trial);
  void release_resources(Trial& trial);
  static void take_changes_back(Trial& trial);
  void continue_from(Trial& trial, checkpoint::CheckpointId checkpoint);
  void follow(const Decision& decision);
  void warn_about_lost_offer(const Trial& trial);
  void warn_about_missing_metrics(const Metrics& metrics);
  void warn_about_text(const Trial& trial, const Metrics& metrics);

  void schedule();
  void say_why_trials_wait();
  bool may_move() const;
  bool population_is_made();
  bool should_make_trial() const;
  bool make_trial();
  void make_trial(TrialIndex index, const Config& suggestion);
  bool accept(TrialIndex trial, const std::optional<Config>& suggestion);
  Variant variant_of(TrialIndex trial, const Config& suggestion) const;
  Trial& add_trial(TrialIndex index, Variant& variant);
  const Value* recorded(TrialIndex trial, std::string_view key) const;
  std::string find_needs(Trial& trial) const;
  void add_needs(const Trial& trial, Dict& data) const;
  bool update_needs(Trial& trial);
  std::string shortage_of(const Trial& trial) const;
  void load_trial(TrialIndex index, const Value& saved);
  std::optional<resources::Only> own_place(const Trial& trial) const;
  bool has_room(const Trial& trial, const Needs& needs);
  std::optional<TrialIndex> next_of(const Runnable& offered);
  void set_cut_off(Trial& trial);
  void begin_waiting(Trial& trial, TrialStatus status);
  void end_waiting(Trial& trial);
  Launch start_of(Trial& trial);
  void launch(Trial& trial);
  void take_over(Trial& trial);
  void resume(Trial& trial);
  void delete_unneeded_checkpoints();
  void record(DecisionKind kind, const Trial& trial, Dict data = {});

  Trainable trainable_;
  TunerOptions first_options_;
  TunerOptions options_;
  VariantGenerator variants_;
  ResourceNeeds needs_;
  AskedSearcher searcher_;
  std::unique_ptr<Scheduler> scheduler_;
  StopperSet stoppers_;
  checkpoint::CheckpointRegistry checkpoints_;
  resources::Cluster cluster_;
  State state_;

  std::vector<Trial> trials_;
  std::set<TrialIndex> live_;
  std::set<TrialIndex> waiting_;               // pending or paused
  std::set<TrialIndex> pending_;               // those of them that are to begin or to be restarted
  std::set<TrialIndex> cut_off_;               // those of them that ran when a controller ended
  std::set<TrialIndex> holders_;               // of resources
  std::set<TrialIndex> parked_;                // whose workers are parked
  bool said_why_trials_wait_ = false;          // since a trial began
  std::set<std::string> warned_of_text_ = {};  // metrics reported as text in this session
  Actions* actions_ = nullptr;                 // of the event being handled
  std::optional<TrialIndex> ended_ = {};       // the last trial that has ended in that event
  const RecordedAnswers* recorded_ = nullptr;  // of that event; null: it is not replayed
};

}  // namespace cadre::tune
