// The shell around the Experiment: passes events from the engine to it, and carries out its actions in the store, the
// files and the engine, in turns (control/turns.h).
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/requests.h"
#include "control/turns.h"
#include "engine/engine.h"
#include "store/experiment_store.h"
#include "tune/assignment.h"
#include "tune/callback_list.h"
#include "tune/console/console.h"
#include "tune/experiment.h"
#include "tune/loggers/result_files.h"
#include "tune/running_time.h"
#include "tune/searcher_thread.h"
#include "tune/snapshots.h"
#include "tune/trial_agents.h"

namespace cadre {
extern template class control::Turns<tune::Experiment>;
}

namespace cadre::tune {

class Controller final : public control::Turns<Experiment> {
 public:
  struct Setting {
    std::string experiment_name;
    std::filesystem::path directory;  // of the experiment
    Trainable trainable;
    TunerOptions options = {};
    ControllerStarted::Errored errored = ControllerStarted::Errored::leave;
    bool allow_divergence = false;                         // on a restore
    Extension extension = {};                              // on a restore
    std::optional<Dict> description = {};                  // of trainable and options, if there is an extension
    std::optional<publish::Publication> publication = {};  // empty: nothing is published
  };

  // Updates `running_time`, which the console shows.
  Controller(Setting setting, Experiment& experiment, RunningTime& running_time, store::ExperimentStore& store,
             engine::Engine& engine, Console& console);

  // Brings the experiment to the state that the store describes; see recovery.h.
  void recover();

 private:
  std::vector<Event> begin() override;
  void translate(engine::Event event, std::vector<Event>& events) override;
  void add_other_events(std::vector<Event>& events) override;
  void turn_begins() override { callbacks_.step_begins(); }
  bool receive(Event& event) override;
  void handled(const Step& step) override;
  void all_handled() override;
  void write_facts() override;
  std::int64_t record(const Step& step) override;
  void prepare(const Action& action) override;
  bool must_be_synced(const Action& action) const override;
  void answer(const Action& action) override;
  void log(const Step& step) override;
  void write_urgent_files() override;
  void perform(const Action& action) override;
  void turn_ends(const std::vector<Step>& turn) override;
  void write_files() override { files_.flush(); }
  void tick(TimePoint now) override;
  void add_deadlines(control::Earliest& earliest) const override;
  void end_turns() override;
  bool is_complete() const override { return !experiment_.interrupted(); }
  void session_ends() override;
  std::set<std::string> checkpoints_to_keep() const override;

  bool watches_memory() const;
  void take_requests(std::vector<Event>& events);
  Event checked(Event event);
  TrialAssignment assignment_of(const Launch& launch) const;
  std::vector<std::string> nodes_for_workers(const Launch& launch) const;
  std::string address_of(engine::NodeId node) const;
  void launch(const Launch& launch);
  void start_agent(engine::WorkerId agent, TrialIndex trial, engine::NodeId node, Value payload);
  void remove_forgotten_checkpoints(const Trial& trial);
  void take_over(const TakeOver& take_over);
  void discard_half_checkpoints(const WorkerEnded& ended);
  ExperimentInfo info() const;
  void take_snapshot();

  Setting setting_;
  Experiment& experiment_;
  RunningTime& running_time_;
  Console& console_;
  TimePoint next_memory_check_ = {};
  ResultFiles files_;
  control::Requests requests_;
  TimePoint next_requests_ = {};
  std::vector<std::string> unanswered_ = {};  // requests that are in the present turn
  CallbackList callbacks_;
  std::optional<std::string> callback_states_ = {};  // to be written with the turn
  Snapshots snapshots_;
  SearcherThread searcher_;
  TrialAgents agents_;
  std::vector<checkpoint::CheckpointId> lost_checkpoints_;
};

}  // namespace cadre::tune
