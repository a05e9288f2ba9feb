// Operations of all ranks of a group together, with Cadre's errors; cadre/train_torch/group.h is in terms of these.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "cadre/error.h"
#include "torch/distributed/group.h"

namespace cadre::distributed {

// What a backend throws when another rank is gone has no type of its own.
template <class Operation>
auto together(const Group& group, const std::string& name, Operation operation) {
  try {
    return operation();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw EngineError(name + " of rank " + std::to_string(group.rank) + " with the other ranks of " +
                      std::to_string(group.world_size) +
                      " failed; the error of the rank that ended first says why: " + error.what());
  }
}

// The texts of all ranks, by rank.
std::vector<std::string> all_gather_text(const Group& group, const std::string& text);

}  // namespace cadre::distributed
