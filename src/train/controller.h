// The shell around the Run: carries events in from the engine, and actions out to the store, the files and the engine,
// in turns, as that of an experiment does (tune/controller.h): commit first, then answer and act.
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
  // `directory` is the run's. The run must be new. `parent` is what it belongs to; nullptr: nothing.
  // Empty `publication`: the run is published nowhere.
  Controller(const Description& description, std::filesystem::path directory, Run& run, store::ExperimentStore& store,
             engine::Engine& engine, run::ParentRun* parent, std::optional<publish::Publication> publication);

  // Brings the run to the state that the store describes; see recovery.h.
  void recover();

  // Runs it to its end, or until it is interrupted and nothing of it runs any more. A full disk makes it wait. Throws
  // EngineError when the engine is gone and StorageError when the store or a file cannot be written; the run can then
  // be continued from what is in the store.
  void run();

 private:
  // An event and what followed from it.
  struct Step {
    Event event;
    double time = 0;        // seconds since 1970
    bool repeated = false;  // a report that adds no result
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

  // One transaction.
  void write(const std::vector<Step>& turn);
  void prepare(const Action& action, std::int64_t cause);
  void commit(const CommitCheckpoint& checkpoint);
  // Into the world.
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
  run::AwakeClock clock_;  // for what workers have to do in time
  run::ParentRun* parent_;
  run::Interrupts interrupts_;
  run::SignalledEnds signalled_ends_;

  ReportBarrier barrier_;
  run::KeyValues key_values_;
  CheckpointQuestions questions_;
  // By what they are for; one of an attempt replaces that of an earlier one.
  std::map<std::pair<Timer::Kind, std::int64_t>, std::pair<engine::Engine::Clock::time_point, Timer>> timers_;
  // Of a run with a range of workers: how many there could be, and when that is looked at again.
  std::optional<std::int64_t> capacity_;
  std::optional<engine::Engine::Clock::time_point> next_look_;
  std::int64_t begun_attempt_ = 0;  // the last one whose first function has begun
  bool told_of_interrupt_ = false;
  std::int64_t last_event_ = 0;               // sequence number of the last one that was recorded
  std::map<run::CheckpointId, Dict> sealed_;  // files of checkpoints whose transaction is not committed yet
  // When the transaction that says so is synced.
  std::vector<std::pair<run::CheckpointId, std::filesystem::path>> to_delete_;
  ControllerStarted beginning_;
  std::vector<Event> forwarded_;  // to be handed to the core
  ResultFiles files_;
  RunConsole console_;
  CallbackList callbacks_;
  run::FileWorker file_worker_;
  run::Uploader uploader_;
  publish::Publishing publishing_;
};

}  // namespace cadre::train
