// Registry of the existing checkpoints and their users; decides which may be deleted. Pure: other classes move and
// delete the files.
//
// A checkpoint exists as long as retention keeps it or there is a reference to it: from the trial whose latest it is,
// or from a worker that was started from it. Each owner's newest synced checkpoint exists until a newer one is synced.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cadre/checkpoint_config.h"
#include "cadre/value.h"

namespace cadre::run {

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
  bool contains(CheckpointId id) const { return entries_.contains(id); }
  std::size_t size() const { return entries_.size(); }

  // For base/archive.h. No checkpoint may be waiting for deletion.
  static void fields(auto& archive, auto& registry) {
    archive("next_id", registry.next_id_);
    archive("entries", registry.entries_);
    archive("kept", registry.kept_);
    archive("synced", registry.synced_);
  }

  // Returns the checkpoints that are no longer needed, each once, and removes them from the registry.
  std::vector<CheckpointRecord> take_deletable();

  const CheckpointRecord& get(CheckpointId id) const;
  // Returns the owner's kept checkpoints, best last.
  std::vector<CheckpointId> kept(OwnerId owner) const;
  // Returns all existing checkpoints, kept or referenced.
  std::vector<CheckpointId> all() const;

 private:
  struct Entry {
    CheckpointRecord record;
    std::int64_t references = 0;
    bool kept = true;
    bool is_ranked = true;

    static void fields(auto& archive, auto& entry) {
      archive("owner", entry.record.owner);
      archive("step", entry.record.step);
      archive.inner_path("directory", entry.record.directory);
      archive("metrics", entry.record.metrics);
      archive("ancestors", entry.record.ancestors);
      archive("id", entry.record.id);
      archive("references", entry.references);
      archive("kept", entry.kept);
      archive.added("is_ranked", entry.is_ranked);
    }
  };
  void apply_retention(OwnerId owner);
  void drop_if_unneeded(CheckpointId id);
  bool worse(CheckpointId a, CheckpointId b) const;
  std::optional<double> score(CheckpointId id) const;

  CheckpointConfig config_;
  CheckpointId next_id_ = 1;
  std::map<CheckpointId, Entry> entries_;
  std::map<OwnerId, std::vector<CheckpointId>> kept_;  // by owner, oldest first
  std::map<OwnerId, CheckpointId> synced_;             // by owner, the newest one; referenced
  std::vector<CheckpointRecord> deletable_ = {};
};

}  // namespace cadre::run
