// Conversion of an optimizer's options and state to the state_dict of the Python class of the same name, and back.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "cadre/value.h"
#include "torch/faults.h"
#include "torch/pickle_value.h"

namespace cadre::pt {

// Returns {"state": {0: {…}, …}, "param_groups": [{"lr": …, "params": [0, …]}, …]}. The tensors are the optimizer's
// own. Throws InvalidArgument for an optimizer that optimizer_kind.h does not list. `more`: further entries of a group.
Value optimizer_state(const torch::optim::Optimizer& optimizer,
                      const std::function<Dict(std::size_t group)>& more = {});

// Checked options and states to set in an optimizer.
struct OptimizerUpdate {
  std::vector<std::unique_ptr<torch::optim::OptimizerOptions>> group_options;
  std::vector<std::pair<torch::Tensor, std::unique_ptr<torch::optim::OptimizerParamState>>> parameter_states;
  void apply(torch::optim::Optimizer& optimizer);
};

// Compares a state_dict with an optimizer and adds mismatches to `faults`. Changes nothing. The result's tensors are
// copies of the file's, with the device and type of their parameters.
OptimizerUpdate prepare_optimizer_update(const torch::optim::Optimizer& optimizer, const Value& state_dict,
                                         Faults& faults);

}  // namespace cadre::pt
