// The checkpoints of a training run: pending ones (reported, not yet committed; oldest first), committed ones, and the
// latest, from which a group continues. Pure: it decides; the shell copies, moves and deletes.
//
// Checkpoints are committed in the order in which they were reported: a pending one delays all later ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cadre/checkpoint_config.h"
#include "checkpoint/checkpoint_registry.h"
#include "train/events.h"

namespace cadre::train {

// A checkpoint that all ranks have reported and that is not yet committed.
struct PendingCheckpoint {
  enum class State {
    promised,  // a function in a worker is still making it
    uploading,
    pausing,  // the upload failed and will be retried after a delay
    idle,     // the upload failed and is left to the next controller
    ready,    // can be committed
  };
  CheckpointNumber number = 0;
  State state = State::ready;
  std::int64_t step = 0;
  Metrics metrics = {};
  GroupCheckpoint reported = {};
  std::string directory = {};  // name after the commit
  std::int64_t tries = 0;      // failed uploads
  bool waits_for_space = false;
  bool operator==(const PendingCheckpoint&) const = default;
};

struct CommittedCheckpoint {
  checkpoint::CheckpointId id = 0;
  std::string directory = {};
  std::optional<WantedValidation> validation = {};  // unranked until this has finished
};

class Checkpoints {
 public:
  explicit Checkpoints(CheckpointConfig config) : registry_(std::move(config)) {}

  bool operator==(const Checkpoints&) const = default;

  // ---- Events. Actions are appended.

  // Adds a checkpoint that all ranks have reported.
  CheckpointNumber report(const GroupReported& report, Actions& actions);
  void uploaded(const CheckpointUploaded& event, Actions& actions);
  // Both return why the checkpoint was dropped; empty: it was not. If `may_try` is false, a failed upload is left to
  // the next controller.
  std::string upload_failed(const UploadFailed& event, bool may_try, Actions& actions);
  std::string promise_ended(const PromiseEnded& event, Actions& actions);
  // Handles promises that ended before all ranks had reported; called after report(). Returns as above.
  std::string take_early_ends(Actions& actions);
  // Retries an upload after its delay.
  void try_again(CheckpointNumber number, Actions& actions);
  // Drops promised checkpoints, because their workers have ended.
  void drop_promised(Actions& actions);
  // Stops retrying failed uploads: the run was interrupted.
  void stop_trying();
  // Resumes uploads in a new controller, and drops pending checkpoints whose files were lost.
  void resume(const ControllerStarted& event, Actions& actions);
  // Commits the checkpoints that are ready, in order, up to the first that is not.
  std::vector<CommittedCheckpoint> commit_ready(Actions& actions);
  void delete_unneeded(Actions& actions);

  // ---- References

  // Starts a group from the latest checkpoint and returns it; nullptr: there is none. It is kept until the next call
  // or end_group().
  const checkpoint::CheckpointRecord* begin_group();
  void end_group();
  // Returns the directory of the latest checkpoint, for ranks; empty: none. It is kept until the next call or
  // end_group().
  std::string share_latest();
  void set_synced(checkpoint::CheckpointId id) { registry_.set_synced(id); }
  // Completes its metrics after its validation has finished, and ranks it.
  void complete(checkpoint::CheckpointId id, Metrics metrics) { registry_.rank(id, std::move(metrics)); }
  // Removes a checkpoint that was lost. Returns true if it was the latest; its ancestor, if any, is the latest then.
  bool remove_lost(checkpoint::CheckpointId id);

  // ---- Queries

  const std::vector<PendingCheckpoint>& pending() const { return pending_; }
  // Returns the directory of a pending checkpoint; empty if a function in a worker will choose it, or if it was
  // dropped.
  std::string name_of(CheckpointNumber number) const;
  bool is_pausing(CheckpointNumber number) const;
  bool is_uploading() const;  // true for pausing too
  // Returns true if this controller will not commit the checkpoint, because the upload of it or of an earlier one has
  // failed.
  bool is_left_to_the_next(CheckpointNumber number) const;
  const checkpoint::CheckpointRegistry& registry() const { return registry_; }
  const std::optional<checkpoint::CheckpointId>& latest() const { return latest_; }
  // Returns where a group would continue, for messages: a directory, or "the beginning".
  std::string start_for_people() const;

 private:
  PendingCheckpoint* find(CheckpointNumber number);
  static void begin(PendingCheckpoint& pending, Actions& actions);
  std::string give_up(CheckpointNumber number, const std::string& reason, Actions& actions);
  void refer(std::optional<checkpoint::CheckpointId>& reference, std::optional<checkpoint::CheckpointId> checkpoint);

  CheckpointNumber reported_ = 0;
  std::int64_t step_ = 0;                        // of the present group's last report with a checkpoint
  std::vector<PendingCheckpoint> pending_ = {};  // oldest first
  std::vector<PromiseEnded> early_ends_ = {};    // of promises for the report that ranks are making now
  checkpoint::CheckpointRegistry registry_;
  // References into the registry.
  std::optional<checkpoint::CheckpointId> latest_ = {};
  std::optional<checkpoint::CheckpointId> started_from_ = {};
  std::optional<checkpoint::CheckpointId> shared_ = {};
};

}  // namespace cadre::train
