// The parts of a controller that do not depend on its core: what it needs of the world, patience with a full disk,
// interrupts, the deletion and sealing of checkpoints, publishing. turns.h adds the core.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cadre/error.h"
#include "checkpoint/checkpoint_registry.h"
#include "checkpoint/file_worker.h"
#include "control/awake_clock.h"
#include "control/replay.h"
#include "control/signalled_ends.h"
#include "control/work_place.h"
#include "engine/engine.h"
#include "engine/interrupts.h"
#include "publish/publishing.h"
#include "store/experiment_store.h"
#include "store/run_directory.h"

namespace cadre::control {

// The earliest of several deadlines.
class Earliest {
 public:
  using TimePoint = engine::Engine::Clock::time_point;
  void add(const std::optional<TimePoint>& due) {
    if (due && (!due_ || *due < *due_)) due_ = due;
  }
  const std::optional<TimePoint>& due() const { return due_; }

 private:
  std::optional<TimePoint> due_ = {};
};

class Shell {
 public:
  using TimePoint = engine::Engine::Clock::time_point;

  struct Setting {
    std::filesystem::path directory = {};  // of the experiment or training run
    store::Tenant tenant = {};             // which of both it is
    PublishConfig publish_config = {};
    std::optional<publish::Publication> publication = {};  // empty: nothing is published
    // Prints one or more lines for the user; `at_once`: the controller will wait.
    std::function<void(const std::string& text, bool at_once)> print = {};
  };

  Shell(Setting setting, store::ExperimentStore& store, engine::Engine& engine);
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

 private:
  Setting setting_;  // first: the others are made from it
  WorkPlace work_place_;

 protected:
  ~Shell() = default;

  const std::filesystem::path& directory() const { return setting_.directory; }
  const WorkPlace& work_place() const { return work_place_; }
  void say(const std::string& text) const { setting_.print(text, false); }
  void warn(const std::string& text) const { say("Warning: " + text); }
  void warn(const std::vector<std::string>& texts) const {
    for (const std::string& text : texts) warn(text);
  }
  std::filesystem::path path_of(const std::filesystem::path& inner) const { return setting_.directory / inner; }

  // Prepares the work place; call before the first worker starts, after a recovery.
  void prepare_work_place();
  // Takes over what a recovery has found, but for the lost checkpoints, and tells the user.
  void continue_from(const Recovered& recovered);

  // Calls `act` again while the disk is full, until an interrupt arrives. `act` must be able to start over after
  // OutOfSpace.
  template <class Act>
  void patiently(const Act& act) const {
    act_patiently(std::cref(act));
  }
  // Returns WorkPlace::needs() of a checkpoint; waits while the disk is full.
  std::vector<std::string> needs_of(const std::string& checkpoint) const;
  // Calls `act`; adds to its errors how the run can be continued.
  void resumably(const std::function<void()>& act) const;

  // Returns the sequence number of the last recorded event.
  std::int64_t last_event() const { return last_event_; }

  // Returns true once, when the first interrupt has arrived or the engine closes, and tells the user.
  bool takes_interrupt();
  // Returns the checkpoints that were sealed since the last call.
  std::vector<checkpoint::CheckpointId> take_sealed();
  // Deletes a directory that is no checkpoint, and what a node has stored of it.
  void discard(std::filesystem::path directory);
  // Deletes a directory after the next sync; `id`: the checkpoint's, 0 if it is none.
  void delete_after_sync(checkpoint::CheckpointId id, std::filesystem::path directory);
  // Syncs the store; then deletes what waits for that.
  void sync();
  void warn_of_errors() { warn(file_worker_.take_errors()); }
  // Returns directories that were to be deleted and may not be yet.
  std::vector<std::string> pending_deletions() const;
  // Publishes the rest, for as long as PublishConfig allows or until another interrupt.
  void finish_publishing(std::set<std::string> checkpoints_to_keep);

  store::ExperimentStore& store_;
  engine::Engine& engine_;
  AwakeClock clock_;  // for deadlines of workers
  engine::Interrupts interrupts_;
  SignalledEnds signalled_ends_;
  bool told_of_interrupt_ = false;
  std::map<checkpoint::CheckpointId, Dict> found_sealed_;  // by the recovery, until the first turn
  std::map<checkpoint::CheckpointId, Dict> sealed_;  // file lists of sealed checkpoints, until the turn is committed
  checkpoint::FileWorker file_worker_;
  publish::Publishing publishing_;
  std::int64_t last_event_ = 0;

 private:
  void let_nodes_store();
  void act_patiently(const std::function<void()>& act) const;

  // Directories to delete once the transaction that removes them from the store is synced.
  std::vector<std::pair<checkpoint::CheckpointId, std::filesystem::path>> to_delete_;
};

}  // namespace cadre::control
