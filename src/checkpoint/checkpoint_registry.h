// Registry of the existing checkpoints and their users; decides which may be deleted. Pure: other classes move and
// delete the files.
//
// A checkpoint exists as long as retention keeps it or there is a reference to it: from the trial whose latest it is,
// or from a worker that was started from it. Each owner's newest synced checkpoint exists until a newer one is synced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cadre/checkpoint_config.h"
#include "cadre/value.h"

namespace cadre::checkpoint {

using CheckpointId = std::int64_t;
using OwnerId = std::uint32_t;  // the trial that reported it

struct CheckpointRecord {
  CheckpointId id = 0;
  OwnerId owner = 0;
  std::int64_t step = 0;       // the report's step in its lineage
  std::string directory = {};  // path relative to the experiment's directory
  Metrics metrics = {};        // the report's metrics
  // Earlier checkpoints of its lineage, newest first, that existed when this one was added; at most 16. The run
  // continues from the newest of them if this one is lost.
  std::vector<CheckpointId> ancestors = {};
  bool operator==(const CheckpointRecord&) const = default;
};

// A checkpoint that exists.
struct RegistryEntry {
  CheckpointRecord record = {};
  std::int64_t references = 0;
  bool kept = true;       // by retention
  bool is_ranked = true;  // false: its metrics are not complete yet
  bool operator==(const RegistryEntry&) const = default;
};
// The state of a registry.
struct RegistryState {
  CheckpointId next_id = 1;
  std::map<CheckpointId, RegistryEntry> entries = {};
  std::map<OwnerId, std::vector<CheckpointId>> kept = {};  // by owner, oldest first
  std::map<OwnerId, CheckpointId> synced = {};             // by owner, the newest one; referenced
  bool operator==(const RegistryState&) const = default;
};

class CheckpointRegistry {
 public:
  explicit CheckpointRegistry(CheckpointConfig config) : config_(std::move(config)) {}

  // Adds the newest checkpoint of its owner, and applies retention to the owner's checkpoints. `parent` is the previous
  // checkpoint of its lineage. An unranked checkpoint is kept until it is ranked, and does not count for retention.
  CheckpointId add(OwnerId owner, std::int64_t step, std::string directory, Metrics metrics,
                   std::optional<CheckpointId> parent = {}, bool is_ranked = true);
  // Ranks a checkpoint, whose metrics are complete now, and applies retention to the owner's checkpoints.
  void rank(CheckpointId id, Metrics metrics);

  // Count references. Releasing the last one of a checkpoint that retention has dropped makes it deletable.
  void retain(CheckpointId id);
  void release(CheckpointId id);

  // Marks a checkpoint as synced: its files survive a loss of power. Does nothing if it is gone.
  void set_synced(CheckpointId id);
  // Returns true if the owner has a synced checkpoint that is at least as new.
  bool is_synced(CheckpointId id) const;

  // Drops a checkpoint that is missing or damaged from its owner's list, regardless of retention.
  void drop(CheckpointId id);
  // Returns the newest of its ancestors that still exists; empty if there is none.
  std::optional<CheckpointId> ancestor(CheckpointId id) const;
  bool contains(CheckpointId id) const { return state_.entries.contains(id); }
  std::size_t size() const { return state_.entries.size(); }

  // Returns the checkpoints that are no longer needed, each once, and removes them from the registry.
  std::vector<CheckpointRecord> take_deletable();

  const CheckpointRecord& get(CheckpointId id) const;
  // Returns the owner's kept checkpoints, best last.
  std::vector<CheckpointId> kept(OwnerId owner) const;
  // Returns all existing checkpoints, kept or referenced.
  std::vector<CheckpointId> all() const;

  // Return and replace the state, for snapshots. No checkpoint may be waiting for deletion. restore() throws
  // StorageError if a directory is not inside the experiment's.
  const RegistryState& state() const { return state_; }
  void restore(RegistryState state);
  // Compares the states.
  bool operator==(const CheckpointRegistry& other) const { return state_ == other.state_; }

 private:
  void apply_retention(OwnerId owner);
  void drop_if_unneeded(CheckpointId id);
  bool worse(CheckpointId a, CheckpointId b) const;
  std::optional<double> score(CheckpointId id) const;

  CheckpointConfig config_;
  RegistryState state_;
  std::vector<CheckpointRecord> deletable_ = {};
};

}  // namespace cadre::checkpoint
