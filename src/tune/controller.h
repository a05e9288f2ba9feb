// The shell around the Experiment: passes events from the engine to it, and carries out its actions in the store, the
// files and the engine, in turns.
//
// A turn waits for messages, passes all that have arrived to the Experiment, commits the events and decisions in one
// transaction, and only then answers workers and acts. So everything that a worker was told is in the store. Result
// files are derived from the store: they are written after the answers, many results at a time.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "publish/publishing.h"
#include "run/awake_clock.h"
#include "run/file_worker.h"
#include "run/interrupts.h"
#include "run/signalled_ends.h"
#include "store/experiment_store.h"
#include "tune/assignment.h"
#include "tune/callback_list.h"
#include "tune/console/console.h"
#include "tune/experiment.h"
#include "tune/loggers/result_files.h"
#include "tune/running_time.h"
#include "tune/snapshots.h"
#include "tune/timers.h"

namespace cadre::tune {

class Controller {
 public:
  struct Setting {
    std::string experiment_name;
    std::filesystem::path directory;  // of the experiment
    Trainable trainable;
    TunerOptions options = {};
    ControllerStarted::Errored errored = ControllerStarted::Errored::leave;
    bool allow_divergence = false;                         // on a restore
    std::optional<publish::Publication> publication = {};  // empty: nothing is published
  };

  // Updates `running_time`, which the console shows.
  Controller(Setting setting, Experiment& experiment, RunningTime& running_time, store::ExperimentStore& store,
             engine::Engine& engine, Console& console);

  // Brings the experiment to the state that the store describes; see recovery.h.
  void recover();

  // Runs the experiment until it ends, or until it is interrupted and no worker is left. Waits while the disk is full.
  // Throws EngineError when the engine is gone and StorageError when the store or a file cannot be written; the
  // experiment can then be restored from the store.
  void run();

 private:
  // An event and the actions that followed from it.
  struct Step {
    Event event;
    double time = 0;        // seconds since 1970
    bool repeated = false;  // true for a result whose step was acknowledged before
    Actions actions = {};
  };

  void take_turns();
  std::vector<Event> next_events();
  std::vector<Event> due_timers();
  void take_interrupt(std::vector<Event>& events);
  void take_sealed(std::vector<Event>& events);
  void watch_memory(std::vector<Event>& events);
  bool watches_memory() const;
  Event checked(Event event);
  void take_turn(std::vector<Event> events);
  std::optional<std::chrono::nanoseconds> time_to_wait() const;
  void sync();
  // Calls `act` again while the disk is full, until an interrupt arrives. `act` must be able to start over after
  // OutOfSpace.
  template <class Act>
  void patiently(Act act);

  // Commits the turn as one transaction.
  void write(const std::vector<Step>& turn, const std::optional<std::string>& callback_states);
  void prepare(const Action& action, std::int64_t cause);
  // Carries out an action outside the store, after the commit.
  void perform(const Action& action);
  void answer(const AnswerReport& answer);
  TrialAssignment assignment_of(const Launch& launch) const;
  void launch(const Launch& launch);
  void remove_forgotten_checkpoints(const Trial& trial);
  void take_over(const TakeOver& take_over);
  void discard_half_checkpoints(const WorkerEnded& ended);
  void say_callback_warnings();
  std::set<std::string> checkpoints_to_keep() const;

  ExperimentInfo info() const;
  void write_result_files();
  void take_snapshot();

  Setting setting_;
  Experiment& experiment_;
  RunningTime& running_time_;
  store::ExperimentStore& store_;
  engine::Engine& engine_;
  run::AwakeClock clock_;  // for timers
  Console& console_;
  run::Interrupts interrupts_;
  run::SignalledEnds signalled_ends_;

  Timers timers_;
  bool told_of_interrupt_ = false;
  engine::Engine::Clock::time_point next_look_at_memory_ = {};
  ResultFiles files_;
  CallbackList callbacks_;
  std::optional<engine::Engine::Clock::time_point> files_due_ = {};  // when buffered results must be written
  std::int64_t last_event_ = 0;                                      // sequence number of the last recorded event
  Snapshots snapshots_;
  std::map<run::CheckpointId, Dict> sealed_;  // file lists of sealed checkpoints, until the turn is committed
  // Directories to delete once the transaction that removes them from the store is synced.
  std::vector<std::pair<run::CheckpointId, std::filesystem::path>> to_delete_;
  std::vector<run::CheckpointId> lost_checkpoints_;
  run::FileWorker file_worker_;
  bool diverged_ = false;  // true: a restore diverged from the events that may be published
  publish::Publishing publishing_;
};

}  // namespace cadre::tune
