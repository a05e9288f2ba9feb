// Machines whose GPUs are of several kinds. Pure.
#pragma once

#include <string>
#include <vector>

#include "cadre/resources.h"

namespace cadre::resources {

// Returns the kinds in the form of Resources::accelerator_type: "H100" if all are of that kind, else "A100,A100,A10G".
std::string join_kinds(const std::vector<std::string>& kinds);

// Returns the kind of each GPU of a machine; empty texts if nothing is known.
std::vector<std::string> kinds_of_gpus(const Resources& machine);

// Returns the fault of a machine's accelerator type, which must name one kind or as many as there are GPUs; empty if
// there is none.
std::string fault_of_kinds(const Resources& machine);

// Returns true if a machine has GPUs of a kind.
bool has_kind(const Resources& machine, const std::string& kind);

// Returns a part of a machine with its accelerator type: that of the first of these GPUs, as many as it has.
Resources with_kinds(Resources part, const Resources& machine, const std::vector<int>& gpus);

}  // namespace cadre::resources
