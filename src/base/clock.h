// The time of day. Durations are measured with std::chrono::steady_clock.
#pragma once

#include <string>

namespace cadre::base {

// Returns seconds since 1970.
double wall_seconds();

// Returns seconds since the machine was started, including time asleep, which std::chrono::steady_clock does not
// count. Events that this process waits for may have happened during that sleep.
double boot_seconds();

// Returns the local time as %Y-%m-%d_%H-%M-%S.
std::string date_text(double seconds_since_1970);

}  // namespace cadre::base
