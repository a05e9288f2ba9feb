// What lies in directories. All errors are StorageError with the path and the system's reason.
#pragma once

#include <cstdint>
#include <filesystem>

namespace cadre::base {

struct FileInfo {
  enum class Kind { file, directory, other };  // other: a link, a device, a socket
  Kind kind = Kind::other;
  std::int64_t size = 0;  // bytes
};

// What a path leads to; links are not followed. Throws StorageError, also where there is nothing.
FileInfo info_of(const std::filesystem::path& path);

}  // namespace cadre::base
