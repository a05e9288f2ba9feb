// The checkpoints of a training run: those that were reported and are on their way, oldest first; those that are
// committed; and the one to go on from. Pure: it decides, others copy, move and delete.
//
// Checkpoints are committed in the order in which they were reported. One that is still on its way keeps those behind
// it waiting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/archive.h"
#include "cadre/checkpoint_config.h"
#include "run/checkpoint_registry.h"
#include "train/events.h"

namespace cadre::train {

// A checkpoint that all ranks have reported and that is not committed yet.
struct PendingCheckpoint {
  enum class State {
    promised,  // a function in a worker makes it
    uploading,
    pausing,  // has failed, and is tried again after a time
    idle,     // has failed, and is left to another controller
    ready,    // can be committed
  };
  CheckpointNumber number = 0;
  State state = State::ready;
  std::int64_t step = 0;
  Metrics metrics = {};
  GroupCheckpoint reported = {};
  std::string directory = {};  // that it will be committed as
  std::int64_t tries = 0;      // uploads that have failed
  bool waits_for_space = false;

  static void fields(auto& archive, auto& pending) {
    archive("number", pending.number);
    archive("state", pending.state);
    archive("step", pending.step);
    archive("metrics", pending.metrics);
    archive("reported", pending.reported);
    archive("directory", pending.directory);
    archive("tries", pending.tries);
    archive("waits_for_space", pending.waits_for_space);
  }
};

struct CommittedCheckpoint {
  run::CheckpointId id = 0;
  std::string directory = {};
  std::optional<WantedValidation> validation = {};  // it is not ranked before that is finished
};

class Checkpoints {
 public:
  explicit Checkpoints(CheckpointConfig config) : registry_(std::move(config)) {}

  // ---- What happens to them. Actions are appended.

  // All ranks have reported one.
  CheckpointNumber report(const GroupReported& report, Actions& actions);
  void uploaded(const CheckpointUploaded& event, Actions& actions);
  // Both return why a checkpoint was given up; empty: it was not. Where `may_try` is false a failed upload is left to
  // another controller.
  std::string upload_failed(const UploadFailed& event, bool may_try, Actions& actions);
  std::string promise_ended(const PromiseEnded& event, Actions& actions);
  // The same for promises that had ended when the ranks had not yet all reported; behind report().
  std::string take_early_ends(Actions& actions);
  // The pause before another try is over.
  void try_again(CheckpointNumber number, Actions& actions);
  // Workers are gone, and their promises with them.
  void drop_promised(Actions& actions);
  // Nothing is tried again that has failed: somebody wants the run's end.
  void stop_trying();
  // Another controller goes on, without those that are lost.
  void resume(const ControllerStarted& event, Actions& actions);
  // Those that can be, in order.
  std::vector<CommittedCheckpoint> commit_ready(Actions& actions);
  void delete_unneeded(Actions& actions);

  // ---- Who needs them

  // A group begins with the latest: it may read that until the next call, or until end_group().
  const run::CheckpointRecord* begin_group();
  void end_group();
  // The directory of the latest, which ranks are told; it stays until they are told again, or until end_group().
  std::string tell();
  void set_synced(run::CheckpointId id) { registry_.set_synced(id); }
  // Its validation is finished: its metrics are complete, and it is ranked.
  void settle(run::CheckpointId id, Metrics metrics) { registry_.rank(id, std::move(metrics)); }
  // It is gone. True when it was the latest: an older one is now, if there is any.
  bool lose(run::CheckpointId id);

  // ---- How things stand

  const std::vector<PendingCheckpoint>& pending() const { return pending_; }
  // The directory that a pending one is to be; empty where a function in a worker is to say that, or it was given up.
  std::string name_of(CheckpointNumber number) const;
  bool is_pausing(CheckpointNumber number) const;
  bool is_uploading() const;  // or pausing
  const run::CheckpointRegistry& registry() const { return registry_; }
  const std::optional<run::CheckpointId>& latest() const { return latest_; }
  // Where a group would go on: a directory, or "the beginning".
  std::string start_for_people() const;

  static void fields(auto& archive, auto& checkpoints) {  // for base/archive.h
    archive("reported", checkpoints.reported_);
    archive("step", checkpoints.step_);
    archive("early_ends", checkpoints.early_ends_);
    archive("pending", checkpoints.pending_);
    archive("registry", checkpoints.registry_);
    archive("latest", checkpoints.latest_);
    archive("started_from", checkpoints.started_from_);
    archive("told", checkpoints.told_);
  }

 private:
  PendingCheckpoint* find(CheckpointNumber number);
  static void begin(PendingCheckpoint& pending, Actions& actions);
  std::string give_up(CheckpointNumber number, const std::string& reason, Actions& actions);
  void refer(std::optional<run::CheckpointId>& reference, std::optional<run::CheckpointId> checkpoint);

  CheckpointNumber reported_ = 0;
  std::int64_t step_ = 0;                        // of the last report of the present group that had one
  std::vector<PendingCheckpoint> pending_ = {};  // oldest first
  std::vector<PromiseEnded> early_ends_ = {};    // of promises for the report that ranks are making
  run::CheckpointRegistry registry_;
  // References into the registry.
  std::optional<run::CheckpointId> latest_ = {};
  std::optional<run::CheckpointId> started_from_ = {};
  std::optional<run::CheckpointId> told_ = {};
};

}  // namespace cadre::train
