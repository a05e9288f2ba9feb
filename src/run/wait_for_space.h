// In a worker: what a full disk does to it. It is no fault of the worker's, which waits like everybody else.
#pragma once

#include <functional>

namespace cadre::run {

// Calls `act` each second until it does not throw OutOfSpace, and says so once on standard error. `act` must be able to
// begin anew after one.
void wait_for_space(const std::function<void()>& act);

}  // namespace cadre::run
