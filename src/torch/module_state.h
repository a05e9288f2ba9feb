// A module's parameters and buffers to a state_dict, and back.
#pragma once

#include <torch/torch.h>

#include <utility>
#include <vector>

#include "torch/faults.h"
#include "torch/pickle_value.h"

namespace cadre::pt {

// {"fc.weight": tensor, …}, names as in Python. The tensors are the module's own, not copies.
Value module_state(const torch::nn::Module& module);

// Values to copy into a module's tensors, checked.
struct ModuleUpdate {
  std::vector<std::pair<torch::Tensor, torch::Tensor>> target_and_source;
  void apply() const;
};

// Compares a state_dict with a module and adds what does not fit to `faults`. Changes nothing.
ModuleUpdate prepare_module_update(const torch::nn::Module& module, const Value& state_dict, Faults& faults);

}  // namespace cadre::pt
