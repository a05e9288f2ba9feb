// What the library may do with a Checkpoint and its users may not.
#pragma once

#include "cadre/checkpoint.h"

namespace cadre {

class CheckpointAccess {
 public:
  // Takes the directory of a checkpoint that Cadre owns and that was not reported yet; an empty one for any other.
  static CheckpointDirectory take(const Checkpoint& checkpoint) {
    return checkpoint.owned_ ? std::move(*checkpoint.owned_) : CheckpointDirectory({});
  }
};

}  // namespace cadre
