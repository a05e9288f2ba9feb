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

// Says if an optimizer may be a part of one, the rest of which is on other ranks.
enum class Partial { refused, taken };

// Returns the parameters of an optimizer, those of all parts of it.
std::vector<torch::Tensor> all_parameters(const torch::optim::Optimizer& optimizer);

// Returns {"state": {0: {…}, …}, "param_groups": [{"lr": …, "params": [0, …]}, …]}. The tensors are the optimizer's
// own. Throws InvalidArgument for an optimizer that optimizer_kind.h does not list, or of which other ranks have parts.
// `more`: further entries of a group.
Value optimizer_state(const torch::optim::Optimizer& optimizer, const std::function<Dict(std::size_t group)>& more = {},
                      Partial partial = Partial::refused);

// Checked options and states to set in an optimizer.
struct OptimizerUpdate {
  std::vector<std::unique_ptr<torch::optim::OptimizerOptions>> group_options;
  std::vector<std::pair<torch::Tensor, std::unique_ptr<torch::optim::OptimizerParamState>>> parameter_states;
  void apply(torch::optim::Optimizer& optimizer);
};

// Compares a state_dict with an optimizer and adds mismatches to `faults`. Changes nothing. The result's tensors are
// copies of the file's, with the device and type of their parameters. An optimizer that is a part of one gets its part
// of a whole state or, with Partial::taken, a state of that part.
OptimizerUpdate prepare_optimizer_update(const torch::optim::Optimizer& optimizer, const Value& state_dict,
                                         Faults& faults, Partial partial = Partial::refused);

}  // namespace cadre::pt
