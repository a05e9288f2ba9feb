#include "base/system_error.h"

#include <cerrno>
#include <cstring>

#include "cadre/error.h"

namespace cadre::base {

std::string last_system_error() { return std::strerror(errno); }

void throw_storage_error(std::string_view doing, const std::filesystem::path& path) {
  const bool full = errno == ENOSPC || errno == EDQUOT;
  const std::string message = "cannot " + std::string(doing) + " " + path.string() + ": " + last_system_error();
  if (full) throw OutOfSpace(message);
  throw StorageError(message);
}

}  // namespace cadre::base
