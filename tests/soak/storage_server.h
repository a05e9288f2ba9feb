// The S3 server of a soak: starts with the first published run and ends with the soak.
#pragma once

#include <sys/types.h>

#include <filesystem>

#include "survival/place.h"

namespace cadre::survival {

// Returns a folder of the server. Without Cadre's library for object storages it is a directory below `fallback`.
StorageFolder folder_of_the_server(const std::filesystem::path& fallback);
// The server's process; -1: it has not begun.
pid_t storage_server();

}  // namespace cadre::survival
