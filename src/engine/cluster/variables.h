// Environment variables of a process, by name.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cadre::engine::cluster {

using Variables = std::map<std::string, std::string>;

// Returns those of this process.
Variables own_variables();
// Returns true for a variable that belongs to this machine, to a terminal or display of it, or to the job that this
// process is in: it is wrong on another machine.
bool is_of_this_machine(std::string_view name);
// Returns them as NAME=value, as a process is started with them.
std::vector<std::string> as_environment(const Variables& variables);

}  // namespace cadre::engine::cluster
