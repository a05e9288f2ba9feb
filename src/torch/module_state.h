// A module's parameters and buffers to a state_dict, and back.
#pragma once

#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

#include "torch/faults.h"
#include "torch/pickle_value.h"

namespace cadre::pt {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// The module's own parameters and buffers, not copies; names as in Python: "fc.weight".
NamedTensors tensors_of(const torch::nn::Module& module);
// The same as a dictionary, without their gradients.
Value module_state(const torch::nn::Module& module);

// Values to copy into a module's tensors, checked.
struct ModuleUpdate {
  std::vector<std::pair<torch::Tensor, torch::Tensor>> target_and_source;
  void apply() const;
  // The sources become the module's memory instead; those of another type or device are copied.
  void apply_without_copies() const;
};

// Compares a state_dict with a module and adds what does not fit to `faults`. Changes nothing.
ModuleUpdate prepare_module_update(const torch::nn::Module& module, const Value& state_dict, Faults& faults);

}  // namespace cadre::pt
