// Directories of a working directory whose files are only in a storage: published files are removed from the local
// disk and downloaded again when needed. Such a directory contains only one file, which lists the missing files.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>

#include "cadre/value.h"
#include "storage/storage.h"

namespace cadre::storage {

// In a working directory: contains the URI where it is published.
inline constexpr const char* kPublishedToFile = "published_to.json";
// In a directory whose files are only in the storage: lists them.
inline constexpr const char* kRemoteFile = ".remote.json";

void write_published_to(const std::filesystem::path& working_directory, const Uri& uri);
// Returns the URI where a working directory is published; empty if it is not. Throws StorageError if its file cannot
// be read.
std::optional<Uri> published_to(const std::filesystem::path& working_directory);

// The list of a directory's files: {"<path inside it>": {"size": bytes, "xxh3": "16 digits"}}. An entry may have
// "part", the directory below the place in which the file is, where several processes have stored parts of one
// directory.

struct Remote {
  Dict files = {};
  std::string place = {};  // the directory's path in the storage; empty: its path below the working directory

  // Returns that path. `directory`: the one below the working directory.
  const std::string& place_of(const std::string& directory) const { return place.empty() ? directory : place; }
};
// Throws StorageError, naming `source`, if a path in a list leads out of its directory.
void check_list(const Dict& files, const std::string& source);
// Returns a list whose files are in a part; empty: in none.
Dict in_part(Dict files, const std::string& part);
// Adds the files of another list whose paths are not in this one, and neither below nor above one of its files.
void add_files(Dict& files, const Dict& others);
// Returns the files that a directory lacks; empty if it has its files or does not exist. Throws StorageError.
std::optional<Remote> remote_files(const std::filesystem::path& directory);
// Returns the URI at which a directory or file of a working directory is published; empty if it is not. The working
// directory itself has a URI too.
std::optional<Uri> published_place(const std::filesystem::path& path);
// Returns the directory in which a directory's files are: itself, or where it is published if that is a directory too;
// empty if they must be downloaded. Throws StorageError.
std::filesystem::path directory_with_files(const std::filesystem::path& directory);
// Returns the path of a file: the given one, or if no regular file is there, where it is published if that is in a
// directory. So what workers of a cluster's nodes print is read where they print it.
std::filesystem::path readable_file(const std::filesystem::path& path);
// Makes a directory without its files: where there was none, it comes with its list, also if this process is killed.
void make_remote(const std::filesystem::path& directory, const Remote& remote);
// Replaces the list in such a directory, which must exist.
void replace_list(const std::filesystem::path& directory, const Remote& remote);
// Replaces a directory with one without its files, atomically for readers where the file system can, then removes the
// old one.
void replace_by_remote(const std::filesystem::path& directory, const Remote& remote);

// How long a file is tried again while the storage does not answer.
inline constexpr std::chrono::seconds download_patience{300};
// Downloads listed files from a directory of a storage into an empty one, and compares their size and checksum with the
// list. `uri`: the storage's, for messages. Throws StorageError; StorageFault if the storage fails for too long.
void download_files(Storage& storage, const Uri& uri, const Dict& files, const std::string& name,
                    const std::filesystem::path& target, std::chrono::seconds patience = download_patience);
// Does the same with a directory without its files.
void download_remote(const std::filesystem::path& directory, const std::filesystem::path& target,
                     std::chrono::seconds patience = download_patience);
// Does the same in place; does nothing if the directory has its files. Several processes may call it at once.
void fetch(const std::filesystem::path& directory, std::chrono::seconds patience = download_patience);

// Returns true for a directory beside another one, in which this process, or another one that has not ended, is at work
// in fetch() or replace_by_remote(): whoever removed it would remove files of the other directory. Returns false for
// what they have left when they were killed, and for all other directories.
bool is_in_transfer(const std::filesystem::path& directory);

}  // namespace cadre::storage
