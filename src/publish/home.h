// The working directory of a new experiment or training run, and the lookup of an existing one by name.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cadre/checkpoint_config.h"
#include "publish/place.h"
#include "store/run_directory.h"

namespace cadre::publish {

// Returns the location of an existing run: its URI if it is published, else its directory; empty if there is none.
// Throws InvalidArgument if the storage cannot be used.
std::optional<std::filesystem::path> find_existing(const Place& place, const std::string& name);

struct Home {
  std::filesystem::path directory;
  std::vector<std::string> notes = {};  // messages for the user, one line each
};
// Makes the working directory of a new run. If `name` is empty, the name is made from its function and the time.
// Throws InvalidArgument, with advice, if the name is taken and `if_exists` does not allow another name.
Home make_home(const Place& place, const std::string& name, const std::string& function, IfExists if_exists,
               const store::Tenant& tenant);

}  // namespace cadre::publish
