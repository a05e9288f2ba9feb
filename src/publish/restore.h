// What is published, on a local disk again: to continue it, or to look at it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "publish/place.h"

namespace cadre::publish {

struct WorkingDirectory {
  std::filesystem::path path;
  std::vector<std::string> notes = {};  // for people, a line each
};

// The working directory of what is published at a URI: the one that is there, where it has all that is published, or
// else a new one in its place, made from what is published; checkpoints come when somebody needs them. One that has
// less, or something else, is put aside. Throws NotFound where nothing is published and no working directory is there,
// StorageError that names what is missing or damaged, and InvalidArgument for a storage that cannot be used.
WorkingDirectory working_directory(const storage::Uri& uri, const PublishConfig& config);

// Checks that a working directory belongs to the run published at a URI, and is not in use. Throws InvalidArgument,
// StorageError.
void require_own(const std::filesystem::path& directory, const storage::Uri& uri);

// The same to look at only, in a directory for temporary files that is removed with the last copy of the pointer.
std::shared_ptr<const std::filesystem::path> reading_copy(const storage::Uri& uri);
// Whether a path lies in such a directory: then it means nothing to anybody else.
bool is_in_reading_copy(const std::filesystem::path& path);
// Puts a published file into a working directory or reading copy that lacks it; nothing happens where there is none.
void fetch_file(const std::filesystem::path& directory, const std::string& name);

// Returns whether something is published at a URI, whole or damaged.
bool is_published(const storage::Uri& uri);
// Returns whether working_directory() has one: something is published, or a run that was interrupted before is here.
bool can_continue(const storage::Uri& uri, const PublishConfig& config);
// Returns the path of the working directory, which need not be there.
std::filesystem::path local_directory(const storage::Uri& uri, const PublishConfig& config);

}  // namespace cadre::publish
