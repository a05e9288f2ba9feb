// Environment variables of a process, by name.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace cadre::engine::cluster {

using Variables = std::map<std::string, std::string>;

// Returns those of this process.
Variables own_variables();
// Returns them as NAME=value, as a process is started with them.
std::vector<std::string> as_environment(const Variables& variables);

}  // namespace cadre::engine::cluster
