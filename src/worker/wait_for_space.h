// Waiting for space on a full disk, in a worker. A full disk is not the worker's failure, so it waits as the controller
// does.
#pragma once

#include <functional>

namespace cadre::worker {

// Calls `act` once a second until it does not throw OutOfSpace, and reports the wait once on standard error. It must be
// possible to repeat `act` after that exception.
void wait_for_space(const std::function<void()>& act);

}  // namespace cadre::worker
