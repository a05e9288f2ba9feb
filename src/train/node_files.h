// Carries files between a run's directory and those of nodes that do not see it (engine::Engine::carries_files): has
// parts of checkpoints come from where ranks made them, and committed checkpoints go to nodes whose ranks read them.
#pragma once

#include <deque>
#include <filesystem>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "channel/message.h"
#include "engine/engine.h"
#include "train/events.h"

namespace cadre::train {

class NodeFiles {
 public:
  // `directory`: the run's. Waits in the end for a download that has begun.
  NodeFiles(std::filesystem::path directory, engine::Engine& engine)
      : directory_(std::move(directory)), engine_(engine) {}

  // Begins to fetch the parts of a checkpoint that are on nodes. Returns false if none is.
  bool fetch(const UploadCheckpoint& upload);
  // Returns what has become of the checkpoint, if that is known now.
  std::optional<Event> arrived(const engine::Fetched& fetched);
  // Has nodes keep what they have of a checkpoint that is committed, if it is all of it.
  void committed(const CommitCheckpoint& commit);

  // Replies to a rank when its node has a checkpoint, which is downloaded first if it is in an object storage only.
  void bring(channel::Caller caller, const std::string& checkpoint);
  // Goes on with that; called after the engine was woken.
  void look();

 private:
  using OnNode = std::pair<engine::NodeId, std::string>;
  struct Part {
    CheckpointNumber number = 0;
    std::string copy = {};  // its name in the run's directory
  };

  struct Wanted {
    channel::Caller caller = {};
    std::string checkpoint = {};
  };

  void forget(CheckpointNumber number);

  std::filesystem::path directory_;
  engine::Engine& engine_;
  std::map<OnNode, Part> coming_ = {};
  std::map<OnNode, Part> here_ = {};  // and not committed
  std::deque<Wanted> wanted_ = {};
  std::future<std::string> download_ = {};  // of the first of them; its value: why it has failed, or nothing
};

}  // namespace cadre::train
