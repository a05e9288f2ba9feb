// Directories and their entries. All errors are StorageError with the path and the system's reason.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cadre::base {

struct FileInfo {
  enum class Kind { file, directory, other };  // other: a link, a device, a socket
  Kind kind = Kind::other;
  std::int64_t size = 0;  // bytes
};

// Returns the kind and size of the entry at a path; does not follow links. Throws StorageError, also if nothing is
// there.
FileInfo info_of(const std::filesystem::path& path);

// Waits until the names in a directory are on the disk. Does nothing if the directory may not be read or the file
// system cannot sync directories.
void sync_directory(const std::filesystem::path& path);
// Waits until a directory and all regular files and directories below it are on the disk.
void sync_tree(const std::filesystem::path& path);
// Makes one directory; returns false if the name exists. The parent must exist.
bool make_directory(const std::filesystem::path& path);
void make_directories(const std::filesystem::path& path);
// Does the same and waits until all new names are on the disk, so that they survive a loss of power.
void make_directories_durably(const std::filesystem::path& path);
// Makes a directory in a place where only Cadre makes directories; returns false if there was one. Throws StorageError
// if a link or a file has that name: another user may have put it there.
bool make_own_directory(const std::filesystem::path& path);
// Throws StorageError if the path of such a directory is a link or a file. Does nothing if the path does not exist.
void require_own_directory(const std::filesystem::path& path);
// Makes a directory the working directory of this process. Throws StorageError.
void enter_directory(const std::filesystem::path& path);
// Removes a file, or a directory with its content; does nothing if the path does not exist. Never follows symbolic
// links.
void remove_tree(const std::filesystem::path& path);
// Copies regular files and directories below `from` into `to`, which is made if needed; shares blocks if the file
// system can. Throws StorageError for any other kind of file.
void copy_tree(const std::filesystem::path& from, const std::filesystem::path& to);
// Does the same with hard links, which take no space, if the file system has them. Only for files that are never
// written to again.
void link_tree(const std::filesystem::path& from, const std::filesystem::path& to);
// Does the same for one regular file.
void link_file(const std::filesystem::path& from, const std::filesystem::path& to);
// Returns the names in a directory, sorted.
std::vector<std::string> list_directory(const std::filesystem::path& path);

}  // namespace cadre::base
