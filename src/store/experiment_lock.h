// A lock that permits one controller per experiment. The kernel frees it when its holder ends, however it ends.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/file_descriptor.h"

namespace cadre::store {

class ExperimentLock {
 public:
  static constexpr const char* kFileName = ".lock";

  // Acquires the lock of the experiment in an existing directory, until this object is destroyed. Throws StorageError,
  // naming the holder's host, process and age, if another process holds it.
  explicit ExperimentLock(const std::filesystem::path& directory);

  // Returns the lock's holder ("process 4711 on host, for 20 s"); empty if there is none. Changes nothing on disk.
  // Throws StorageError if the lock's file cannot be read.
  static std::optional<std::string> holder(const std::filesystem::path& directory);

 private:
  base::FileDescriptor file_;
};

}  // namespace cadre::store
