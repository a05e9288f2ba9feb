// Conversion of a module's parameters and buffers to a state_dict and back.
#pragma once

#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

#include "torch/faults.h"
#include "torch/pickle_value.h"

namespace cadre::pt {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// Returns the module's own parameters and buffers, not copies; names as in Python: "fc.weight".
NamedTensors tensors_of(const torch::nn::Module& module);
// Returns them as a dictionary, detached from gradients.
Value module_state(const torch::nn::Module& module);

// Checked values to copy into a module's tensors.
struct ModuleUpdate {
  std::vector<std::pair<torch::Tensor, torch::Tensor>> target_and_source;
  void apply() const;
  // Makes the module's tensors use the memory of the sources; copies sources of another type or on another device.
  void apply_without_copies() const;
};

// Compares a state_dict with a module and adds mismatches to `faults`. Changes nothing.
ModuleUpdate prepare_module_update(const torch::nn::Module& module, const Value& state_dict, Faults& faults);

}  // namespace cadre::pt
