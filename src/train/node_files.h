// Has parts of checkpoints come from where ranks made them, in directories of nodes that do not see the run's
// (engine::Engine::carries_files).
#pragma once

#include <filesystem>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "train/events.h"

namespace cadre::train {

class NodeFiles {
 public:
  // `directory`: the run's. Waits in the end for downloads that have begun.
  NodeFiles(std::filesystem::path directory, engine::Engine& engine)
      : directory_(std::move(directory)), engine_(engine) {}

  // Begins to fetch the parts of a checkpoint that are on nodes. Returns false if none is. Called again after a
  // download for which there was no space, it only repeats that.
  bool fetch(const UploadCheckpoint& upload);
  // Returns what has become of the checkpoint, if that is known now.
  std::optional<Event> arrived(const engine::Fetched& fetched);
  // Has nodes keep what they have of a checkpoint that is committed, if it is all of it.
  void committed(const CommitCheckpoint& commit);

  // Returns what has become of checkpoints meanwhile; call after the engine was woken.
  std::vector<Event> look();

 private:
  using OnNode = std::pair<engine::NodeId, std::string>;
  struct Part {
    CheckpointNumber number = 0;
    std::string copy = {};  // its name in the run's directory
  };

  std::vector<std::filesystem::path> stored_parts(CheckpointNumber number) const;
  std::optional<UploadFailed> download(CheckpointNumber number);
  void forget(CheckpointNumber number);

  std::filesystem::path directory_;
  engine::Engine& engine_;
  std::map<OnNode, Part> coming_ = {};
  std::map<OnNode, Part> here_ = {};  // and not committed
  // Downloads of parts that are in a storage only, while others are here.
  std::map<CheckpointNumber, std::future<std::optional<UploadFailed>>> downloads_ = {};
  std::set<CheckpointNumber> to_download_again_ = {};
};

}  // namespace cadre::train
