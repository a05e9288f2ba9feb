#include "cadre/checkpoint.h"

#include <stdlib.h>

#include "base/directory.h"
#include "base/system_error.h"
#include "base/temporary_folder.h"
#include "storage/remote_directory.h"
#include "storage/uri.h"
#include "store/checkpoint_access.h"

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

namespace {

// Returns where the files of a directory can be read without a download, if they can; else the directory.
fs::path readable(fs::path directory) {
  try {
    if (fs::path with_files = storage::directory_with_files(directory); !with_files.empty()) return with_files;
  } catch (const StorageError&) {  // NOLINT(bugprone-empty-catch): whoever reads the files gets the error
  }
  return directory;
}

CheckpointAccess::Source& the_source() {
  static CheckpointAccess::Source source;
  return source;
}

}  // namespace

Checkpoint Checkpoint::from_directory(fs::path directory) {
  return Checkpoint(readable(std::move(directory)), nullptr);
}

Checkpoint Checkpoint::from_directory(CheckpointDirectory&& directory) {
  auto owned = std::make_shared<CheckpointDirectory>(std::move(directory));
  fs::path path = owned->path();
  return Checkpoint(std::move(path), std::move(owned));
}

void CheckpointAccess::set_source(Source source) { the_source() = std::move(source); }

void CheckpointAccess::make_readable(const fs::path& directory) {
  std::error_code unusable;
  if (the_source() && !fs::exists(directory, unusable)) the_source()(directory);
}

Checkpoint::Reading Checkpoint::as_directory() const {
  CheckpointAccess::make_readable(path_);
  if (fs::path here = storage::directory_with_files(path_); !here.empty()) return Reading(std::move(here));
  std::string path = (base::parent_of_temporary_folders() / "cadre_checkpoint_XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) base::throw_storage_error("make the directory", path);
  CheckpointDirectory directory(path);
  storage::download_remote(path_, directory.path());
  return Reading(std::move(directory));
}

void Checkpoint::to_directory(const fs::path& target) const {
  CheckpointAccess::make_readable(path_);
  base::make_directories(target);
  const fs::path here = storage::directory_with_files(path_);
  if (here.empty()) return storage::download_remote(path_, target);
  base::copy_tree(here, target);
}

Checkpoint Checkpoint::from_reference(const Reference& reference) {
  if (reference.kind == CheckpointAccess::kReferenceKind) return from_directory(reference.id);
  throw InvalidArgument(to_json(reference) + " is a reference to another kind of thing than a checkpoint");
}

Reference to_reference(const Checkpoint& checkpoint) {
  const std::string path = checkpoint.path().string();
  return {CheckpointAccess::kReferenceKind, storage::is_uri(path) ? path : fs::absolute(path).string()};
}

}  // namespace cadre
