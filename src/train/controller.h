// The shell around the Run: passes events from the engine to the Run, and actions to the store, the files and the
// engine. It works in turns, like an experiment's controller (tune/controller.h): commit first, then answer and act.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "publish/publishing.h"
#include "run/awake_clock.h"
#include "run/file_worker.h"
#include "run/gpus.h"
#include "run/interrupts.h"
#include "run/key_values.h"
#include "run/parent_run.h"
#include "run/signalled_ends.h"
#include "run/uploader.h"
#include "store/experiment_store.h"
#include "train/callback_list.h"
#include "train/checkpoint_questions.h"
#include "train/options.h"
#include "train/report_barrier.h"
#include "train/result_files.h"
#include "train/run.h"
#include "train/run_console.h"

namespace cadre::train {

class Controller {
 public:
  // `directory` is the run's. The run must be new. `parent`: the trial or validation that the run belongs to; nullptr:
  // none. Empty `publication`: the run is not published.
  Controller(const Description& description, std::filesystem::path directory, Run& run, store::ExperimentStore& store,
             engine::Engine& engine, run::ParentRun* parent, std::optional<publish::Publication> publication);

  // Brings the run to the state that the store describes; see recovery.h.
  void recover();

  // Runs until the run finishes, or until it is interrupted and all its workers have ended. Waits while the disk is
  // full. Throws EngineError if the engine is lost and StorageError if the store or a file cannot be written; the run
  // can then be continued from its store.
  void run();

 private:
  // An event and the resulting actions.
  struct Step {
    Event event;
    double time = 0;        // seconds since 1970
    bool repeated = false;  // true for a report that adds no result
    Actions actions = {};
  };

  void take_turns();
  std::vector<Event> next_events();
  std::vector<Event> due_timers();
  void take_interrupt(std::vector<Event>& events);
  void take(engine::Received received, std::vector<Event>& events);
  void take(engine::Exited exited, std::vector<Event>& events);
  void take(channel::Report report, Rank rank, std::int64_t attempt, std::vector<Event>& events);
  void take_from_validator(engine::WorkerId worker, channel::Message message, std::vector<Event>& events);
  void take(const channel::Notice& notice, Rank rank, std::int64_t attempt, std::vector<Event>& events);
  void take_uploads(std::vector<Event>& events);
  void take_sealed(std::vector<Event>& events);
  static std::optional<ValidatorLacksWorkers> lacks_workers(const channel::Message& message);
  void look_at_resources(std::vector<Event>& events);
  std::optional<std::string> fault_of_group(const GroupCheckpoint& checkpoint) const;
  void remove_leftovers();
  void take_turn(std::vector<Event> events);
  std::optional<std::chrono::nanoseconds> time_to_wait() const;
  void sync();
  void log(const Event& event, const Actions& actions, double time);
  void write_result_files();
  template <class Act>
  void patiently(Act act);

  // Part of the turn's transaction.
  void write(const std::vector<Step>& turn);
  void prepare(const Action& action, std::int64_t cause);
  void commit(const CommitCheckpoint& checkpoint);
  // After the commit.
  void perform(const Action& action);
  void upload(const UploadCheckpoint& checkpoint);
  void forward(const ForwardResult& result);
  void launch(const LaunchGroup& group);
  void start(const StartValidator& validator);
  void answer(const AnswerGroup& answer);
  void reply(const std::vector<run::KeyValues::Reply>& replies);
  void reply_about_checkpoints();
  RunContext context() const;
  void tell_callbacks(const Action& action);
  void say_callback_warnings();
  std::set<std::string> checkpoints_to_keep() const;

  const Description& description_;
  std::filesystem::path directory_;
  Run& run_;
  store::ExperimentStore& store_;
  engine::Engine& engine_;
  run::AwakeClock clock_;  // for the deadlines of workers
  run::ParentRun* parent_;
  run::Interrupts interrupts_;
  run::SignalledEnds signalled_ends_;

  ReportBarrier barrier_;
  run::KeyValues key_values_;
  CheckpointQuestions questions_;
  // By kind and, for timers of a checkpoint, number; a timer of an attempt replaces an earlier attempt's.
  std::map<std::pair<Timer::Kind, std::int64_t>, std::pair<engine::Engine::Clock::time_point, Timer>> timers_;
  // For a range of workers: how many workers fit, and when that is checked again.
  std::optional<std::int64_t> capacity_;
  std::optional<engine::Engine::Clock::time_point> next_look_;
  std::int64_t begun_attempt_ = 0;  // the last attempt in which a function has begun
  bool told_of_interrupt_ = false;
  std::int64_t last_event_ = 0;               // sequence number of the last recorded event
  std::map<run::CheckpointId, Dict> sealed_;  // files of checkpoints whose transaction is not committed yet
  // Deleted after the sync of the transaction that removes them.
  std::vector<std::pair<run::CheckpointId, std::filesystem::path>> to_delete_;
  ControllerStarted beginning_;
  std::vector<Event> forwarded_;  // for the core, in the next turn
  ResultFiles files_;
  RunConsole console_;
  CallbackList callbacks_;
  run::FileWorker file_worker_;
  run::Uploader uploader_;
  publish::Publishing publishing_;
};

}  // namespace cadre::train
