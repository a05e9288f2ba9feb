// Access to a Checkpoint that the library has and its users have not.
#pragma once

#include <filesystem>
#include <functional>

#include "cadre/checkpoint.h"

namespace cadre {

class CheckpointAccess {
 public:
  static constexpr const char* kReferenceKind = "checkpoint";

  // Returns the directory of a checkpoint that Cadre owns and that was not reported yet; nullptr for any other.
  static CheckpointDirectory* unreported(const Checkpoint& checkpoint) {
    return checkpoint.owned_ && !checkpoint.owned_->path().empty() ? checkpoint.owned_.get() : nullptr;
  }

  // Sets what brings a directory to this machine that does not exist here, before the files of a checkpoint are read;
  // empty: nothing does. For the worker of a run whose directory its node does not see. It may throw StorageError, and
  // is called in any thread.
  using Source = std::function<void(const std::filesystem::path& directory)>;
  static void set_source(Source source);
  static void make_readable(const std::filesystem::path& directory);
};

}  // namespace cadre
