// The functions and classes of the program that datasets may call, by kind and name.
#pragma once

#include <functional>

#include "cadre/data/functions.h"
#include "data/plan.h"

namespace cadre::data {

// Returns what makes the function of a call, in the thread and process that calls it. Throws InvalidArgument if this
// program has none with its kind and name, and for a function of a host in a program without one.
std::function<BatchCall()> find_batch_call(const Call& call, const CallContext& context = {});

}  // namespace cadre::data
