// The functional core of an experiment: events in, actions out. No I/O, no clock, no randomness but the seed's: the
// same events always lead to the same state and the same actions. The Controller is the shell around it.
//
// What holds after every event: a trial has at most one worker that counts, the resources in use are at most those that
// exist, an ended trial never runs again, and every checkpoint that a trial may continue from exists.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/archive.h"
#include "cadre/tune/tuner.h"
#include "run/checkpoint_registry.h"
#include "run/resource_ledger.h"
#include "tune/events.h"
#include "tune/resource_needs.h"
#include "tune/schedulers/scheduler.h"
#include "tune/searchers/variant_generator.h"
#include "tune/stoppers/stoppers.h"
#include "tune/trial.h"

namespace cadre::tune {

class Experiment final : private Population {
 public:
  // The options must have passed check_options().
  Experiment(Trainable trainable, TunerOptions options);

  // A new one of the same trainable and options.
  Experiment anew() const { return Experiment(trainable_, options_); }

  // Takes one event; appends what is to be done, in order.
  void handle(const Event& event, Actions& actions);

  // Everything that later decisions depend on, for a new Experiment of the same trainable and options: `save` without
  // the trials that have ended, each of which is a value of its own. `load` asks for those in ascending order; each is
  // then the last one of trials().
  Dict save() const;
  Value save_trial(TrialIndex index) const;
  void load(const Dict& state, const std::function<Value(TrialIndex)>& ended_trial);
  static void fields(auto& archive, auto& experiment);  // for base/archive.h

  // Nothing is left to do, or, after an interruption, nothing runs any more.
  bool finished() const;
  bool interrupted() const { return interrupted_; }
  // What trials that have not terminated would continue from, or others from them.
  std::vector<run::CheckpointId> needed_checkpoints() const;
  // Whether the timer still means something; one that does not is not worth an event.
  bool awaits(const Timer& timer) const;
  // Whether it is a result that nobody has seen, of a worker that was not told to stop.
  bool counts(const ResultReported& event) const;
  // Whether it brings the checkpoint of a result that counts already.
  bool is_saved_result(const ResultReported& event) const;
  // Whether the step of this report was acknowledged before, in an earlier attempt of its trial.
  bool is_repeated(const ResultReported& event) const;

  const std::vector<Trial>& trials() const { return trials_; }
  const std::set<TrialIndex>& live_trials() const override { return live_; }  // that have not ended
  const run::CheckpointRegistry& checkpoint_registry() const { return checkpoints_; }
  // Workers that only wait for their trial's turn.
  std::int64_t parked_workers() const { return parked_; }
  std::string resource_usage() const { return resources_.usage(); }
  std::string scheduler_state() const { return scheduler_->debug_string(); }
  std::int64_t trials_to_come() const;

 private:
  // Population
  const Trial& trial(TrialIndex index) const override { return trials_.at(index); }
  bool anyone_waits() const override;
  bool can_save(const Trial& trial) const override;
  const run::CheckpointRegistry& checkpoints() const override { return checkpoints_; }

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
  void on(const TimeLost&) {}  // timers run without it
  void on_last_word(Trial& trial, std::optional<Failure> failure);
  void say_if_only_failures_are_left();
  void lose(run::CheckpointId checkpoint);
  void take_up(Trial& trial, bool anew);

  // The trial of an event when it comes from the trial's present worker; nullptr when that was replaced or has ended.
  Trial* present(TrialIndex index, std::int64_t attempt);
  const Trial* present(TrialIndex index, std::int64_t attempt) const;

  std::string commit_checkpoint(Trial& trial, const channel::Report& report);
  Decision decide(const Trial& trial, const Metrics& metrics);
  void carry_out(Trial& trial, const Decision& decision);
  std::optional<AfterSave> what_waits_for_a_checkpoint(const Trial& trial, Decision::Kind kind) const;
  bool saves_at_end() const;
  void ask_to_save(Trial& trial, AfterSave then);
  void on_saved(Trial& trial);
  void exploit(const Exploit& exploit);
  void pause(Trial& trial);
  bool can_park(const Trial& trial) const;
  bool gives_gpus_back(const Trial& trial) const;
  void park(Trial& trial);
  void leave_parking(Trial& trial);
  void unpark_the_coldest();
  void fail(Trial& trial, Failure failure);
  void end(Trial& trial, TrialStatus status);
  void end_everybody();
  void stop_all();
  void try_again(Trial& trial);
  void make_pending(Trial& trial);
  void set_aside(Trial& trial);
  void put_off(Trial& trial, const Failure& failure);
  void tell_to_stop(Trial& trial);
  void kill(Trial& trial, std::optional<Failure> failure);
  std::optional<double> time_left(const Trial& trial) const;
  void limit_running(const Trial& trial);
  void worker_is_done(Trial& trial);
  void release_resources(Trial& trial);
  void continue_from(Trial& trial, run::CheckpointId checkpoint);
  void follow(const Decision& decision);
  void warn_about_lost_offer(const Trial& trial);
  void warn_about_missing_metrics(const Metrics& metrics);
  void warn_about_text(const Trial& trial, const Metrics& metrics);

  void schedule();
  bool should_make_trial() const;
  void make_trial();
  std::string add_trial();
  std::string find_needs(Trial& trial) const;
  bool update_needs(Trial& trial);
  std::string shortage_of(const Trial& trial) const;
  void load_trial(const Value& saved);
  static std::optional<run::Gpus> own_gpus(const Trial& trial);
  std::vector<TrialIndex> candidates() const;
  Launch start_of(Trial& trial);
  void launch(Trial& trial);
  void take_over(Trial& trial);
  void resume(Trial& trial);
  void delete_unneeded_checkpoints();
  void record(DecisionKind kind, const Trial& trial, Dict data = {});

  Trainable trainable_;
  TunerOptions options_;
  VariantGenerator variants_;
  ResourceNeeds needs_;
  std::unique_ptr<TrialScheduler> scheduler_;
  Stoppers stoppers_;
  run::CheckpointRegistry checkpoints_;
  Resources total_ = {};  // of all nodes
  run::ResourceLedger resources_;

  std::vector<Trial> trials_;
  std::set<TrialIndex> live_;
  std::set<TrialIndex> waiting_;               // pending or paused
  std::int64_t running_ = 0;                   // trials that hold resources
  std::int64_t workers_ = 0;                   // processes that have not ended
  std::int64_t parked_ = 0;                    // those of them that wait for their turn
  std::int64_t pauses_ = 0;                    // so far
  bool interrupted_ = false;                   // by somebody, until another controller begins
  bool failed_fast_ = false;                   // one trial's failure has ended all others
  bool stopping_all_ = false;                  // every trial that runs ends with its next report
  bool warned_ = false;                        // about metrics that the options name and the first result does not have
  std::set<std::string> warned_of_text_ = {};  // metrics that a trial has reported as text, in this session
  Actions* actions_ = nullptr;                 // of the event being handled
};

}  // namespace cadre::tune
