#include "base/system_error.h"

#include <cerrno>
#include <cstring>

namespace cadre::base {

std::string last_system_error() { return std::strerror(errno); }

void throw_storage_error(std::string_view doing, const std::filesystem::path& path) {
  const int reason = errno;
  const bool full = reason == ENOSPC || reason == EDQUOT;
  const std::string message = "cannot " + std::string(doing) + " " + path.string() + ": " + std::strerror(reason);
  if (full) throw OutOfSpace(message);
  if (reason == EMFILE || reason == ENFILE || reason == ENOMEM) throw OutOfResources(message);
  throw StorageError(message);
}

}  // namespace cadre::base
