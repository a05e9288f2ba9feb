// An experiment's core on the simulated engine: random trials, results and faults from one seed, and the invariants
// that must hold after every event.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "control/timers.h"
#include "engine/simulated/simulated_engine.h"
#include "tune/changed_trials.h"
#include "tune/experiment.h"

namespace cadre::tune {

// A parameter of the trainable: it offers a checkpoint with every result, as classes do, and only sends one when asked.
inline constexpr const char* kOffers = "offers";

// Faults in a world, as probabilities per report.
struct Mishaps {
  double throws = 0;
  double dies = 0;
  double returns = 0;
  double no_metric = 0;
  double hangs = 0;
  double ignores_stop = 0;
  double loses_checkpoint = 0;  // per checkpoint, at each interruption
  double lacks_memory = 0;      // after each step
  bool plateau = false;         // scores are rounded, so that many are equal
  double declines = 0;          // of a trainable class, to continue with another config
};

// The nodes of a world.
struct Nodes {
  std::vector<Resources> machines = {};  // of the first ones, and of any that join; empty: one machine
  double changes = 0;                    // nodes that join, drain or leave, as a probability per step
};

class World {
 public:
  World(std::uint64_t seed, TunerOptions options, Resources machine, Trainable trainable, Mishaps faults,
        Nodes nodes = {});

  // Handles the next events. Returns false when the experiment is finished.
  bool step();
  void run_to_the_end() {
    while (step()) {
    }
  }
  // Ends the controller and all workers; another controller continues with the recorded events.
  void kill_controller();
  // Interrupts the experiment, which stops in an orderly way; another controller continues.
  void interrupt();
  // Checks that the latest checkpoint of each trial that offers checkpoints is from its last result.
  void check_all_saved() const;
  // Ends the controller after the experiment; another controller restores failed trials as `errored` says.
  void restore_errored(ControllerStarted::Errored errored);

  const Experiment& experiment() const { return *experiment_; }
  const std::vector<Event>& recorded() const { return recorded_; }
  const std::vector<std::string>& decisions() const { return decisions_; }
  std::int64_t exploits = 0;
  std::int64_t kills = 0;
  std::int64_t retries = 0;
  std::int64_t lost = 0;  // lost checkpoints
  std::int64_t saves = 0;
  std::int64_t takeovers = 0;
  std::int64_t changes = 0;   // of resources
  std::int64_t restarts = 0;  // with other resources
  std::int64_t moves = 0;     // of trials whose nodes drain
  std::int64_t nodes_lost = 0;
  std::int64_t workers_lost = 0;  // with their nodes
  std::int64_t parted = 0;        // workers that were started with bundles on several nodes

 private:
  void begin(ControllerStarted::Errored errored = ControllerStarted::Errored::leave);
  void replay();
  void change_nodes();
  bool has_room(const std::set<engine::NodeId>& nodes, std::size_t more) const;
  void lose_parts(engine::NodeId node);
  bool is_moved(const Trial& trial) const;
  void check_node_lost(const WorkerEnded& event, const Trial& before) const;
  void handle(const Event& event);
  void take_snapshot();
  void perform(const Action& action);
  void check() const;
  void check_decisions(const Event& event, const Actions& actions);
  void check_saved(const Trial& trial) const;
  void check_exploit(const RecordDecision& decision) const;
  void check_start(const Launch& launch) const;
  void check_result(const LogResult& result);
  void check_end() const;
  std::unique_ptr<engine::simulated::Behaviour> make_behaviour(const engine::WorkerSpec& spec);

  std::mt19937_64 random_;
  Trainable trainable_;
  TunerOptions options_;
  Resources resources_;
  Mishaps faults_;
  Nodes nodes_;
  std::mt19937_64 node_random_;
  engine::NodeId next_node_ = 0;
  std::map<engine::NodeId, Resources> present_ = {};  // nodes, as the experiment was told
  std::set<engine::NodeId> ready_ = {};               // of them
  std::set<engine::NodeId> doomed_ = {};              // of them: will leave
  std::map<engine::WorkerId, engine::NodeId> node_of_ = {};
  // Workers that are killed because another node of their trial has left, with that node.
  std::map<engine::WorkerId, engine::NodeId> robbed_ = {};
  std::set<engine::WorkerId> late_ = {};  // started on nodes that had left, which the experiment was not told yet
  std::unique_ptr<Experiment> experiment_;
  std::unique_ptr<engine::simulated::SimulatedEngine> engine_;
  std::vector<Event> recorded_;
  std::vector<std::string> decisions_;
  Value snapshot_ = {};
  std::map<TrialIndex, Value> ended_trials_ = {};  // at the snapshot
  ChangedTrials changed_ = {};                     // since the snapshot
  std::size_t events_in_snapshot_ = 0;
  control::Timers<Timer> timers_;
  struct Asked {
    TrialIndex trial = 0;
    engine::Engine::Clock::time_point answer_due = {};
  };
  std::optional<Asked> asked_;                                // of the searcher
  std::map<checkpoint::CheckpointId, std::string> existing_;  // checkpoint directories
  std::map<checkpoint::CheckpointId, TrialIndex> owners_;
  std::map<TrialIndex, checkpoint::CheckpointId>
      synced_;                                   // the newest checkpoint per trial that survives a loss of power
  std::map<TrialIndex, std::int64_t> shown_;     // the last step of each trial's lineage in its result files
  std::map<TrialIndex, std::int64_t> attempts_;  // the last one started
  std::map<TrialIndex, Needs> told_;             // what the trial's worker knows of its resources
  std::set<engine::WorkerId> alive_;             // workers that have not sent their last message
  std::set<TrialIndex> counting_;                // trials whose reports count, by the decisions
};

}  // namespace cadre::tune
