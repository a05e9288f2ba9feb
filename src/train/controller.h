// The shell around the Run: passes events from the engine to it, and carries out its actions in the store, the files
// and the engine, in turns (control/turns.h).
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/uploader.h"
#include "control/turns.h"
#include "engine/engine.h"
#include "resources/gpus.h"
#include "store/experiment_store.h"
#include "train/callback_list.h"
#include "train/checkpoint_questions.h"
#include "train/node_files.h"
#include "train/options.h"
#include "train/report_barrier.h"
#include "train/result_files.h"
#include "train/run.h"
#include "train/run_console.h"
#include "worker/key_values.h"
#include "worker/parent_run.h"

namespace cadre {
extern template class control::Turns<train::Run>;
}

namespace cadre::train {

class Controller final : public control::Turns<Run> {
 public:
  // `directory` is the run's. The run must be new. `parent`: the trial or validation that the run belongs to; nullptr:
  // none. Empty `publication`: the run is not published.
  Controller(const Description& description, std::filesystem::path directory, Run& run, store::ExperimentStore& store,
             engine::Engine& engine, RunConsole& console, worker::ParentRun* parent,
             std::optional<publish::Publication> publication);

  // Brings the run to the state that the store describes; see recovery.h.
  void recover();

 private:
  std::vector<Event> begin() override;
  void translate(engine::Event event, std::vector<Event>& events) override;
  void add_other_events(std::vector<Event>& events) override;
  void add_deadline_events(std::vector<Event>& events) override;
  void add_event_deadlines(control::Earliest& earliest) const override;
  bool receive(Event& event) override;
  std::int64_t record(const Step& step) override;
  void prepare(const Action& action) override;
  bool must_be_synced(const Action& action) const override;
  void answer(const Action& action) override;
  void log(const Step& step) override;
  void write_urgent_files() override;
  void perform(const Action& action) override;
  void turn_ends(const std::vector<Step>& turn) override;
  void write_files() override { files_.write(); }
  void tick(TimePoint now) override;
  void add_deadlines(control::Earliest& earliest) const override;
  void end_turns() override;
  bool is_complete() const override { return run_.status() == RunStatus::finished; }
  void end() override;
  std::set<std::string> checkpoints_to_keep() const override;

  void handle(engine::Received received, std::vector<Event>& events);
  void handle(engine::Exited exited, std::vector<Event>& events);
  void handle(engine::Fetched fetched, std::vector<Event>& events);
  void handle(engine::NodeJoined joined, std::vector<Event>& events) { events.emplace_back(std::move(joined)); }
  void handle(engine::NodeDraining draining, std::vector<Event>& events) { events.emplace_back(std::move(draining)); }
  void handle(engine::NodeLeft left, std::vector<Event>& events) { events.emplace_back(std::move(left)); }
  void handle(channel::Report report, Rank rank, std::int64_t attempt, std::vector<Event>& events);
  void handle_from_validator(engine::WorkerId worker, channel::Message message, std::vector<Event>& events);
  void handle(const channel::Notice& notice, Rank rank, std::int64_t attempt, std::vector<Event>& events);
  void await_publication(const AwaitPublication& wait);
  void look_at_publication();
  void add_upload_events(std::vector<Event>& events);
  void ask(channel::Caller caller, const Value& content);
  std::optional<engine::NodeId> own_directory_of(Rank rank) const;
  static std::optional<ValidatorLacksWorkers> lacks_workers(const channel::Message& message);
  void check_resources(std::vector<Event>& events, bool at_start);
  std::optional<std::string> fault_of_group(const GroupCheckpoint& checkpoint) const;
  void remove_leftovers();
  std::string checkpoint_of_parent();
  void commit(const CommitCheckpoint& checkpoint);
  void upload(const UploadCheckpoint& checkpoint);
  void forward(const ForwardResult& result);
  void launch(const LaunchGroup& group);
  void start(const StartValidator& validator);
  void answer(const AnswerGroup& answer);
  void reply(std::vector<worker::KeyValues::Reply> replies);
  void reply_about_checkpoints();
  Value as_workers_see(const Value& entries) const;
  RunContext context() const;
  void tell_callbacks(const Action& action);

  const Description& description_;
  Run& run_;
  worker::ParentRun* parent_;

  ReportBarrier barrier_;
  worker::KeyValues key_values_;
  CheckpointQuestions questions_;
  // For a range of workers: how many workers fit, and when that is checked again.
  std::optional<std::int64_t> capacity_;
  std::optional<std::pair<AwaitPublication, std::int64_t>> awaited_publication_ = {};  // and its number there
  std::optional<TimePoint> next_check_;
  std::int64_t begun_attempt_ = 0;  // the last attempt in which a function has begun
  ControllerStarted beginning_;
  ResultFiles files_;
  RunConsole& console_;
  CallbackList callbacks_;
  checkpoint::Uploader uploader_;
  NodeFiles node_files_;
  std::vector<engine::NodeId> nodes_of_ranks_ = {};  // of the present or last group
};

}  // namespace cadre::train
