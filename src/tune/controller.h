// The shell around the Experiment: carries events in from the engine, and actions out to the store, the files and the
// engine, in turns.
//
// A turn: wait for something to happen; hand everything that is there to the Experiment; commit it and what was decided
// in one transaction; only then answer and act. So whatever a worker was answered is in the store. The result files
// follow from it: they are written after the answers, many results at a time.
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
    bool allow_divergence = false;                         // of a restore
    std::optional<publish::Publication> publication = {};  // empty: it is published nowhere
  };

  // `running_time` is filled by it, for the console.
  Controller(Setting setting, Experiment& experiment, RunningTime& running_time, store::ExperimentStore& store,
             engine::Engine& engine, Console& console);

  // Brings the experiment to the state that the store describes; see recovery.h.
  void recover();

  // Runs the experiment to its end, or until it is interrupted and nothing of it runs any more. A full disk makes it
  // wait. Throws EngineError when the engine is gone and StorageError when the store or a file cannot be written; the
  // experiment can then be continued from what is in the store.
  void run();

 private:
  // An event and what followed from it.
  struct Step {
    Event event;
    double time = 0;        // seconds since 1970
    bool repeated = false;  // a result whose step was acknowledged before
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
  // Does it again, as long as the disk is full and nobody interrupts. `act` must be able to begin anew after
  // OutOfSpace.
  template <class Act>
  void patiently(Act act);

  // One transaction.
  void write(const std::vector<Step>& turn, const std::optional<std::string>& callback_states);
  void prepare(const Action& action, std::int64_t cause);
  // Into the world.
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
  std::optional<engine::Engine::Clock::time_point> files_due_ = {};  // when results that wait in memory are written
  std::int64_t last_event_ = 0;  // sequence number of the last one that was recorded
  Snapshots snapshots_;
  std::map<run::CheckpointId, Dict> sealed_;  // files of checkpoints whose transaction is not committed yet
  // When the transaction that says so is synced.
  std::vector<std::pair<run::CheckpointId, std::filesystem::path>> to_delete_;
  std::vector<run::CheckpointId> lost_checkpoints_;
  run::FileWorker file_worker_;
  bool diverged_ = false;  // from what may be published
  publish::Publishing publishing_;
};

}  // namespace cadre::tune
