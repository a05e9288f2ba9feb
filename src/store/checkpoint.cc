#include "cadre/checkpoint.h"

#include "base/directory.h"

namespace cadre {
namespace fs = std::filesystem;

CheckpointDirectory& CheckpointDirectory::operator=(CheckpointDirectory&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

CheckpointDirectory::~CheckpointDirectory() {
  if (path_.empty()) return;
  std::error_code ignored;  // a directory that stays is found and removed when the experiment is opened again
  fs::remove_all(path_, ignored);
}

Checkpoint Checkpoint::from_directory(fs::path directory) { return Checkpoint(std::move(directory), nullptr); }

Checkpoint Checkpoint::from_directory(CheckpointDirectory&& directory) {
  auto owned = std::make_shared<CheckpointDirectory>(std::move(directory));
  fs::path path = owned->path();
  return Checkpoint(std::move(path), std::move(owned));
}

void Checkpoint::to_directory(const fs::path& target) const {
  base::make_directories(target);
  base::copy_tree(path_, target);
}

Reference to_reference(const Checkpoint& checkpoint) { return {"checkpoint", checkpoint.path().string()}; }

}  // namespace cadre
