// The secret in the dashboard's address.
#pragma once

#include <filesystem>
#include <string>

namespace cadre::dashboard {

// Returns 128 random bits of the operating system, as 32 hexadecimal digits. Throws EngineError.
std::string random_token();

// Returns the token in a file, or makes the file, which only this user may read, with a new one. Throws
// InvalidArgument, with what to do, if others may read or write it, it belongs to another user, or it holds no token;
// StorageError.
std::string token_of_file(const std::filesystem::path& file);

}  // namespace cadre::dashboard
