#include "worker/checkpoint_maker.h"

#include <utility>

#include "base/directory.h"
#include "cadre/error.h"
#include "worker/wait_for_space.h"

namespace cadre::worker {

CheckpointMaker::CheckpointMaker(std::string report, PathOf path_of)
    : report_(std::move(report)), path_of_(std::move(path_of)) {}

void CheckpointMaker::require_own_thread() const {
  if (std::this_thread::get_id() == thread_) return;
  throw Error(report_ + " was called in another thread than the training function's; call it in that one");
}

CheckpointDirectory CheckpointMaker::make() {
  require_own_thread();
  const std::filesystem::path path = path_of_(made_++);
  if (!base::make_directory(path)) {
    base::remove_tree(path);
    base::make_directory(path);
  }
  return CheckpointDirectory(path);
}

CheckpointDirectory CheckpointMaker::fill(const CheckpointWriter& write) {
  CheckpointDirectory filled({});
  wait_for_space([&] {
    CheckpointDirectory directory = make();  // removed again if the disk is full
    write(directory.path());
    filled = std::move(directory);
  });
  return filled;
}

}  // namespace cadre::worker
