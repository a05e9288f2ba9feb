// The S3 server of a soak: starts with the first published run and ends with the soak.
#pragma once

#include <sys/types.h>

#include <string>

namespace cadre::survival {

// Returns the URI of a folder of that name. Without Cadre's library for object storages it is a directory below
// `fallback`.
std::string published_folder(const std::string& name, const std::string& fallback);
// Returns the server's process; -1: not started.
pid_t storage_server();

}  // namespace cadre::survival
