// Directories and what lies in them. All errors are StorageError with the path and the system's reason.
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

// What a path leads to; links are not followed. Throws StorageError, also where there is nothing.
FileInfo info_of(const std::filesystem::path& path);

// Waits until the names in a directory are on the disk. Does nothing where the directory may not be read, or the file
// system cannot do that.
void sync_directory(const std::filesystem::path& path);
// Waits until a directory is on the disk with all regular files and directories below it.
void sync_tree(const std::filesystem::path& path);
// Makes one directory; false when it exists. Parents must exist.
bool make_directory(const std::filesystem::path& path);
void make_directories(const std::filesystem::path& path);
// Does the same so that all names that it makes survive a loss of power.
void make_directories_durably(const std::filesystem::path& path);
// Makes one where only Cadre makes directories: a link in its place, which somebody else has put there, is not
// followed. Throws StorageError then.
void make_own_directory(const std::filesystem::path& path);
// Throws StorageError where such a directory is a link, or is none; nothing happens where there is nothing.
void require_own_directory(const std::filesystem::path& path);
// Makes it the working directory of this process. Throws StorageError.
void enter_directory(const std::filesystem::path& path);
// Removes a file, or a directory with its content; nothing happens where there is none. Never follows symbolic links.
void remove_tree(const std::filesystem::path& path);
// Copies regular files and directories below `from` into `to`, which is made if needed; shares blocks where the file
// system can. Refuses anything that is neither.
void copy_tree(const std::filesystem::path& from, const std::filesystem::path& to);
// The same with hard links, which take no space, where the file system has them: files that nobody may write to.
void link_tree(const std::filesystem::path& from, const std::filesystem::path& to);
// The same of one regular file.
void link_file(const std::filesystem::path& from, const std::filesystem::path& to);
// Names in a directory, sorted.
std::vector<std::string> list_directory(const std::filesystem::path& path);

}  // namespace cadre::base
