// Requests for machines with certain labels and kinds of GPUs. Pure.
#pragma once

#include <string>

#include "cadre/resources.h"

namespace cadre::resources {

// Return the first fault of a machine's labels, or of a request's selectors; empty if there is none.
std::string fault_of_labels(const Resources& machine);
std::string fault_of_selectors(const Resources& wanted);

// Returns why a machine does not match a request, as "label zone=eu (it is us)"; empty if it does.
std::string mismatch(const Resources& machine, const Resources& wanted);

// Adds selectors to those of `wanted`. Returns the first contradiction; empty if there is none.
std::string add_selectors(Resources& wanted, const Resources& more);

}  // namespace cadre::resources
