// A folder for temporary files that is gone with its holder, however that ends.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"

namespace cadre::base {

class TemporaryFolder {
 public:
  // In the system's folder for temporary files, under a name that begins with `purpose`. What killed processes have
  // left there for the same purpose is removed: who holds a folder has it locked, which the kernel ends with the
  // process. Where the file system has no locks, it stays. Throws StorageError.
  explicit TemporaryFolder(std::string_view purpose);
  // Removes it with its content, as far as that can be done.
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  FileDescriptor held_;
};

}  // namespace cadre::base
