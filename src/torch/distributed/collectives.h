// Collective operations of a group's ranks, with Cadre's errors; cadre/train_torch/group.h is based on these.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "cadre/error.h"
#include "cadre/train_torch/group.h"
#include "torch/distributed/group.h"

namespace cadre::distributed {

// Throws EngineError if an operation of this group has failed before.
inline void check_intact(const Group& group, const std::string& name) {
  const std::string failure = group.failure->text();
  if (failure.empty()) return;
  throw EngineError(name + " of rank " + std::to_string(group.rank) +
                    ": the group is of no more use after its first error: " + failure);
}

// Runs a collective operation and turns std::exception into EngineError: backends throw no specific type when another
// rank is gone.
template <class Operation>
auto run_collective(const Group& group, const std::string& name, Operation operation) {
  check_intact(group, name);
  try {
    return operation();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const std::string text = name + " of rank " + std::to_string(group.rank) + " with the other ranks of " +
                             std::to_string(group.world_size) +
                             " failed; the error of the rank that ended first says why: " + error.what();
    group.failure->set(text);
    throw EngineError(text);
  }
}

// The same as those of cadre/train_torch/group.h, which compare what the ranks call; these do not, for tensors whose
// shapes follow from a model that was compared.
void all_reduce(const Group& group, torch::Tensor& tensor, train::ReduceOp op = train::ReduceOp::sum);
std::vector<torch::Tensor> all_gather(const Group& group, const torch::Tensor& tensor);

// Returns the texts of all ranks, by rank.
std::vector<std::string> all_gather_text(const Group& group, const std::string& text);

}  // namespace cadre::distributed
