// The time of day. What only measures a duration uses std::chrono::steady_clock.
#pragma once

#include <string>

namespace cadre::base {

// Seconds since 1970.
double wall_seconds();

// Local time as %Y-%m-%d_%H-%M-%S.
std::string date_text(double seconds_since_1970);

}  // namespace cadre::base
