// Requests to running experiments: for `cadre stop`, `pause`, `resume` and `enqueue`, and for pages of the dashboard.
#pragma once

#include <filesystem>
#include <string>

#include "cadre/value.h"

namespace cadre::cli {

// Returns the directory of an experiment to which requests can be made: `name` is as for find_directory. Throws
// InvalidArgument for a published copy and for a training run, and NotFound.
std::filesystem::path controlled_directory(const std::string& name);

// Returns a request (tune/requests.h) that came from outside, checked. Throws InvalidArgument if it is none.
Dict checked_request(const Dict& content);

// Returns what follows from a request that was carried out: "trial 00003 stops at its next report".
std::string consequence_of(const Dict& request);

}  // namespace cadre::cli
