// The working directory of an experiment or a training run that begins, and what is there under its name already.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cadre/checkpoint_config.h"
#include "publish/place.h"
#include "run/run_directory.h"

namespace cadre::publish {

// Returns where a run of that name is: its URI if it is published, else its directory; empty if there is none. Throws
// InvalidArgument for a storage that cannot be used.
std::optional<std::filesystem::path> find_existing(const Place& place, const std::string& name);

struct Home {
  std::filesystem::path directory;
  std::vector<std::string> notes = {};  // for people, a line each
};
// Makes the directory of a new one, without a `name` under that of its function and the time. Throws InvalidArgument,
// with what to do, where the name is taken and `if_exists` asks for no other one.
Home make_home(const Place& place, const std::string& name, const std::string& function, IfExists if_exists,
               const run::Tenant& tenant);

}  // namespace cadre::publish
