// Directories of a working directory whose files lie in a storage only: what was published is removed from the local
// disk, and comes back when somebody needs it. Such a directory has one file, which lists what is not there.
#pragma once

#include <filesystem>
#include <optional>

#include "cadre/value.h"
#include "storage/storage.h"

namespace cadre::storage {

// In a working directory: where it is published.
inline constexpr const char* kPublishedToFile = "published_to.json";
// In a directory whose files are not there.
inline constexpr const char* kRemoteFile = ".remote.json";

void write_published_to(const std::filesystem::path& working_directory, const Uri& uri);
// Empty where it is not published. Throws StorageError for a file that cannot be read.
std::optional<Uri> published_to(const std::filesystem::path& working_directory);

// What is listed of a directory's files: {"<path inside it>": {"size": bytes, "xxh3": "16 digits"}}.

struct Remote {
  Dict files = {};
  std::string place = {};  // of the directory in the storage; empty: its path below the working directory
};
// Returns what a directory lacks; empty for one that has its files, and where there is none. Throws StorageError.
std::optional<Remote> remote_files(const std::filesystem::path& directory);
// Where a directory or file of a working directory is published; empty where it is not. The working directory itself
// has a place too.
std::optional<Uri> published_place(const std::filesystem::path& path);
// A directory without its files.
void make_remote(const std::filesystem::path& directory, const Remote& remote);
// Puts such a one in the place of a directory, in one step for whoever looks, and removes that.
void replace_by_remote(const std::filesystem::path& directory, const Remote& remote);

// Copies the files into an empty directory, and compares them with the list. Tries again, for minutes, where the
// storage does not answer. Throws StorageError.
void download_remote(const std::filesystem::path& directory, const std::filesystem::path& target);
// The same in place; nothing happens to a directory that has its files. Several processes may do so at a time.
void fetch(const std::filesystem::path& directory);

}  // namespace cadre::storage
