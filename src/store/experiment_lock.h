// One controller for an experiment: a lock that the kernel frees with its holder, however that ends.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/file_descriptor.h"

namespace cadre::store {

class ExperimentLock {
 public:
  static constexpr const char* kFileName = ".lock";

  // Takes the lock of the experiment in an existing directory. Throws StorageError that names the holder's host,
  // process and age when there is one. The lock goes with this object.
  explicit ExperimentLock(const std::filesystem::path& directory);

  // Who holds the lock ("process 4711 on host, for 20 s"), empty when nobody does. Changes nothing on disk. Throws
  // StorageError when the lock's file cannot be read.
  static std::optional<std::string> holder(const std::filesystem::path& directory);

 private:
  base::FileDescriptor file_;
};

}  // namespace cadre::store
