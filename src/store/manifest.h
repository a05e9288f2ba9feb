// What a checkpoint's files must be: their names and sizes, and, once they are safe from a loss of power, the checksums
// of their contents. docs/formats.md describes it.
#pragma once

#include <filesystem>
#include <string>

#include "cadre/value.h"

namespace cadre::store {

// {"<path inside the directory>": {"size": bytes}} for every file below a directory. Throws StorageError, also for what
// is neither file nor directory.
Dict list_files(const std::filesystem::path& directory);

// Makes the directory `root / directory`, all files in it and its name below `root` survive a loss of power. Returns
// the list with "xxh3" beside "size": 16 hexadecimal digits. Waits for the disk. Throws StorageError.
Dict seal_files(const std::filesystem::path& root, const std::filesystem::path& directory);

// What is wrong with the files of a directory, for people; empty when they are as listed. Contents are compared where
// the list has their checksums and `contents` asks for it. Files that are not listed do not matter.
std::string fault_of_files(const std::filesystem::path& directory, const Dict& files, bool contents);

}  // namespace cadre::store
