// Detects local file systems. A store must be on one, because SQLite's log needs memory shared between processes and
// reliable locks.
#pragma once

#include <filesystem>

namespace cadre::storage {

// Returns true if the file system of a path, or of its first existing parent directory, is known to be local or
// cannot be queried. All other file systems count as network file systems. For tests, the environment variable
// CADRE_NETWORK_FILE_SYSTEM names a directory below which everything counts as a network file system.
bool is_on_local_disk(const std::filesystem::path& path);

}  // namespace cadre::storage
