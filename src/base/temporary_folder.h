// A folder for temporary files, removed with its owner, or by the next TemporaryFolder of that purpose if the owner
// was killed.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"

namespace cadre::base {

// Returns the system's folder for temporary files. Throws StorageError, with the variable that names it, if there is no
// such folder.
std::filesystem::path parent_of_temporary_folders();

class TemporaryFolder {
 public:
  // Makes the folder in the system's folder for temporary files, with a name that begins with `purpose`. Removes
  // folders of the same purpose left by killed processes: each owner holds a lock on its folder, which the kernel
  // releases when the process ends. On a file system without locks they stay. Throws StorageError.
  explicit TemporaryFolder(std::string_view purpose);
  // Does the same in another folder, which must exist.
  TemporaryFolder(const std::filesystem::path& parent, std::string_view purpose);
  // Removes the folder with its content; ignores errors.
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  FileDescriptor held_;
};

}  // namespace cadre::base
