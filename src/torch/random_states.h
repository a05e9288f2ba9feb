// The states of libtorch's default generators in a file: {"cpu": state, "cuda": [state, …]}.
#pragma once

#include <functional>

#include "torch/pickle_value.h"

namespace cadre::pt {

Value random_states();
// Checks them, and returns what sets them. Throws InvalidArgument.
std::function<void()> prepare_random_states(const Value& saved);

}  // namespace cadre::pt
