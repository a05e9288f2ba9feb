// In a worker: makes the directories of checkpoints that its function fills to report them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "cadre/checkpoint.h"

namespace cadre::worker {

class CheckpointMaker {
 public:
  // Returns the path of the directory with this number; numbers count from 0.
  using PathOf = std::function<std::filesystem::path(std::int64_t number)>;

  // Belongs to the thread that makes it, the training function's. `report`: the name of the function that reports, for
  // messages.
  CheckpointMaker(std::string report, PathOf path_of);

  // Throws Error in another thread.
  void require_own_thread() const;
  // Makes the next directory; in its place may be one that an interrupted controller has left in the same attempt.
  // Throws Error in another thread, OutOfSpace or StorageError.
  CheckpointDirectory make();
  // Does the same, and calls `write` with it. Waits while the disk is full, and then begins anew.
  CheckpointDirectory fill(const CheckpointWriter& write);

 private:
  const std::string report_;
  const PathOf path_of_;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::int64_t made_ = 0;
};

}  // namespace cadre::worker
