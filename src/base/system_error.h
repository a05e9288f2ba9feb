// What the operating system says of a call that failed.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "cadre/error.h"

namespace cadre::base {

// This process has no descriptors or memory left: that says nothing about the file.
class OutOfResources : public StorageError {
 public:
  using StorageError::StorageError;
};

// "No space left on device" and the like for the present errno.
std::string last_system_error();
// Throws StorageError "cannot <doing> <path>: <reason>" for the present errno; OutOfSpace or OutOfResources where that
// says so.
[[noreturn]] void throw_storage_error(std::string_view doing, const std::filesystem::path& path);

// Calls `act`, and throws StorageError in the place of what std::filesystem throws.
template <class Act>
decltype(auto) with_storage_errors(const Act& act) {
  try {
    return act();
  } catch (const std::filesystem::filesystem_error& error) {
    throw StorageError(error.what());
  }
}

}  // namespace cadre::base
