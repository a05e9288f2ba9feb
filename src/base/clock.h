// The time of day. What only measures a duration uses std::chrono::steady_clock.
#pragma once

#include <string>

namespace cadre::base {

// Seconds since 1970.
double wall_seconds();

// Seconds since the machine was started, also those that it slept. What this process waits for may have happened in all
// of them, unlike in those of std::chrono::steady_clock.
double boot_seconds();

// Local time as %Y-%m-%d_%H-%M-%S.
std::string date_text(double seconds_since_1970);

}  // namespace cadre::base
