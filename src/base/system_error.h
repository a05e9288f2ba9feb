// Error messages of failed system calls.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "cadre/error.h"

namespace cadre::base {

// Error for a process without free descriptors or memory: the file itself may be fine.
class OutOfResources : public StorageError {
 public:
  using StorageError::StorageError;
};

// Returns the text of the current errno, such as "No space left on device".
std::string last_system_error();
// Throws StorageError "cannot <doing> <path>: <reason>" for the current errno; OutOfSpace if the disk or quota is
// full, OutOfResources if descriptors or memory are used up.
[[noreturn]] void throw_storage_error(std::string_view doing, const std::filesystem::path& path);

// Calls `act` and turns exceptions of std::filesystem into StorageError.
template <class Act>
decltype(auto) with_storage_errors(const Act& act) {
  try {
    return act();
  } catch (const std::filesystem::filesystem_error& error) {
    throw StorageError(error.what());
  }
}

}  // namespace cadre::base
