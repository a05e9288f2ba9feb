// Access to a Checkpoint that the library has and its users have not.
#pragma once

#include "cadre/checkpoint.h"

namespace cadre {

class CheckpointAccess {
 public:
  // Returns the directory of a checkpoint that Cadre owns and that was not reported yet; nullptr for any other.
  static CheckpointDirectory* unreported(const Checkpoint& checkpoint) {
    return checkpoint.owned_ && !checkpoint.owned_->path().empty() ? checkpoint.owned_.get() : nullptr;
  }
};

}  // namespace cadre
