// What the library may do with a Checkpoint and its users may not.
#pragma once

#include "cadre/checkpoint.h"

namespace cadre {

class CheckpointAccess {
 public:
  // The directory of a checkpoint that Cadre owns and that was not reported yet; nullptr for any other.
  static CheckpointDirectory* unreported(const Checkpoint& checkpoint) {
    return checkpoint.owned_ && !checkpoint.owned_->path().empty() ? checkpoint.owned_.get() : nullptr;
  }
};

}  // namespace cadre
