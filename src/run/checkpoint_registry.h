// Which checkpoints exist, who needs them, and which ones may be deleted. Pure: it decides, others move and delete.
//
// A checkpoint exists as long as retention keeps it or somebody holds a reference: the trial it is the latest of, a
// worker that was started from it. And each owner's newest one that survives a
// loss of power exists until a newer one does.
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
  std::int64_t step = 0;       // of its report in its lineage
  std::string directory = {};  // path inside the experiment's directory
  Metrics metrics = {};        // of its report
  // What its lineage was saved in before, newest first, as far as it existed when this one was made: what to go on from
  // when this one is lost.
  std::vector<CheckpointId> ancestors = {};
};

class CheckpointRegistry {
 public:
  explicit CheckpointRegistry(CheckpointConfig config) : config_(std::move(config)) {}

  // Adds the newest checkpoint of its owner; retention then looks at the owner's list again. `parent` is the one that
  // its lineage was saved in before. One that is not ranked is kept until it is, and counts for nothing.
  CheckpointId add(OwnerId owner, std::int64_t step, std::string directory, Metrics metrics,
                   std::optional<CheckpointId> parent = {}, bool is_ranked = true);
  // Its metrics are complete: retention looks at its owner's list again.
  void rank(CheckpointId id, Metrics metrics);

  // References are counted. Releasing the last one of a checkpoint that retention has dropped makes it deletable.
  void retain(CheckpointId id);
  void release(CheckpointId id);

  // The checkpoint's files survive a loss of power. Nothing happens when it is gone.
  void set_synced(CheckpointId id);
  // Returns true where the owner has a checkpoint that survives a loss of power and is as new.
  bool is_synced(CheckpointId id) const;

  // Drops a checkpoint that is not there any more, or damaged, from its owner's list, whatever retention says.
  void drop(CheckpointId id);
  // The newest one of its lineage that exists beside it.
  std::optional<CheckpointId> ancestor(CheckpointId id) const;
  bool contains(CheckpointId id) const { return entries_.contains(id); }
  std::size_t size() const { return entries_.size(); }

  // For base/archive.h. Nothing may be waiting to be deleted.
  static void fields(auto& archive, auto& registry) {
    archive("next_id", registry.next_id_);
    archive("entries", registry.entries_);
    archive("kept", registry.kept_);
    archive("synced", registry.synced_);
  }

  // Checkpoints that nobody needs any more, each once; they are gone from the registry.
  std::vector<CheckpointRecord> take_deletable();

  const CheckpointRecord& get(CheckpointId id) const;
  // The owner's kept checkpoints, best last.
  std::vector<CheckpointId> kept(OwnerId owner) const;
  // Everything that exists, kept or referenced.
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
  std::map<OwnerId, CheckpointId> synced_;             // the newest one, referenced
  std::vector<CheckpointRecord> deletable_ = {};
};

}  // namespace cadre::run
