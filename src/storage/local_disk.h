// Which file systems are local ones: only on them a store can lie, because SQLite's log needs memory that processes
// share and locks that hold.
#pragma once

#include <filesystem>

namespace cadre::storage {

// Whether the file system of a path, or of the first directory above it that exists, is known to be local. What is not
// known is taken for a network's. The environment variable CADRE_NETWORK_FILE_SYSTEM names a directory below which
// everything counts as a network's: for tests.
bool is_on_local_disk(const std::filesystem::path& path);

}  // namespace cadre::storage
