// The S3 server of a soak, which begins with the first run that is published, and ends with the soak.
#pragma once

#include <sys/types.h>

#include <string>

namespace cadre::survival {

// Returns the URI of a folder of that name. Without Cadre's library for object storages it is a directory below
// `fallback`.
std::string published_folder(const std::string& name, const std::string& fallback);
// The server's process; -1: it has not begun.
pid_t storage_server();

}  // namespace cadre::survival
