#include "cadre/checkpoint.h"

#include <stdlib.h>

#include "base/directory.h"
#include "base/system_error.h"
#include "storage/remote_directory.h"

namespace cadre {
namespace fs = std::filesystem;

CheckpointDirectory& CheckpointDirectory::operator=(CheckpointDirectory&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

CheckpointDirectory::~CheckpointDirectory() {
  if (path_.empty()) return;
  std::error_code ignored;  // a remaining directory is found and removed when the experiment is opened again
  fs::remove_all(path_, ignored);
}

Checkpoint Checkpoint::from_directory(fs::path directory) { return Checkpoint(std::move(directory), nullptr); }

Checkpoint Checkpoint::from_directory(CheckpointDirectory&& directory) {
  auto owned = std::make_shared<CheckpointDirectory>(std::move(directory));
  fs::path path = owned->path();
  return Checkpoint(std::move(path), std::move(owned));
}

Checkpoint::Reading Checkpoint::as_directory() const {
  if (!storage::remote_files(path_)) return Reading(path_);
  std::string path = (fs::temp_directory_path() / "cadre_checkpoint_XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) base::throw_storage_error("make the directory", path);
  CheckpointDirectory directory(path);
  storage::download_remote(path_, directory.path());
  return Reading(std::move(directory));
}

void Checkpoint::to_directory(const fs::path& target) const {
  base::make_directories(target);
  if (storage::remote_files(path_)) return storage::download_remote(path_, target);
  base::copy_tree(path_, target);
}

Reference to_reference(const Checkpoint& checkpoint) { return {"checkpoint", checkpoint.path().string()}; }

}  // namespace cadre
