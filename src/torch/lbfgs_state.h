// LBFGS, whose state is of all parameters together: conversion to the state_dict of Python's class, and back.
#pragma once

#include <torch/torch.h>

#include <functional>

#include "torch/faults.h"
#include "torch/optimizer_state.h"
#include "torch/pickle_value.h"

namespace cadre::pt {

// Do what the functions of optimizer_state.h do for other optimizers.
Value lbfgs_state(const torch::optim::LBFGS& optimizer, const std::function<Dict(std::size_t group)>& more);
OptimizerUpdate prepare_lbfgs_update(const torch::optim::LBFGS& optimizer, const Value& state_dict, Faults& faults);

}  // namespace cadre::pt
