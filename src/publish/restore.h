// Copies of published runs on a local disk, to continue or to read them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "publish/place.h"

namespace cadre::publish {

struct WorkingDirectory {
  std::filesystem::path path;
  std::vector<std::string> notes = {};  // messages for the user, one line each
};

// Returns the working directory for the run published at a URI: the existing one if it contains everything published,
// otherwise a new one made from the published state, with checkpoints downloaded on demand. An existing one with less
// or other contents is renamed, and what a call that was killed has left beside it is removed. Throws NotFound if
// nothing is published and there is no working directory, StorageError that names a missing or damaged object, and
// InvalidArgument if the storage cannot be used.
WorkingDirectory working_directory(const storage::Uri& uri, const PublishConfig& config);

// Checks that a working directory belongs to the run published at a URI, and is not in use. Throws InvalidArgument,
// StorageError.
void require_own(const std::filesystem::path& directory, const storage::Uri& uri);

// Returns a copy for reading, in a temporary directory that is removed with the last copy of the pointer.
std::shared_ptr<const std::filesystem::path> reading_copy(const storage::Uri& uri);
// Returns true if a path is in such a copy: then it is meaningless to other processes.
bool is_in_reading_copy(const std::filesystem::path& path);
// Downloads a published file into a working directory or reading copy that lacks it; does nothing if it is not
// published.
void fetch_file(const std::filesystem::path& directory, const std::string& name);

// Returns true if something is published at a URI, intact or damaged.
bool is_published(const storage::Uri& uri);
// Returns true if working_directory() can return one: something is published, or an interrupted run is on this
// machine.
bool can_continue(const storage::Uri& uri, const PublishConfig& config);
// Returns the path of the working directory, which need not exist.
std::filesystem::path local_directory(const storage::Uri& uri, const PublishConfig& config);

}  // namespace cadre::publish
