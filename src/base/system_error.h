// What the operating system says of a call that failed.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace cadre::base {

// "No space left on device" and the like for the present errno.
std::string last_system_error();
// Throws StorageError "cannot <doing> <path>: <reason>" for the present errno; OutOfSpace where that says so.
[[noreturn]] void throw_storage_error(std::string_view doing, const std::filesystem::path& path);

}  // namespace cadre::base
