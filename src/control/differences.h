// Differences between the options of a program and those that a run was begun with.
#pragma once

#include <string>
#include <vector>

#include "cadre/value.h"

namespace cadre::control {

struct Difference {
  std::string path;    // path of the key: "tune_config/seed"
  std::string before;  // as JSON; empty: missing
  std::string now;
};
// Returns the differences between two descriptions of options, in order. Ignores `verbose` and `log_to_driver`, which
// do not affect decisions.
std::vector<Difference> differences(const Dict& before, const Dict& now);

// Throws InvalidArgument with all differences, a line each. `subject` is "the experiment in <directory>".
void check_same(const Dict& before, const Dict& now, const std::string& subject);

}  // namespace cadre::control
