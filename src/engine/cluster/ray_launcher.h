// The launcher's program, ray_launcher.py, which is compiled into the library: it needs no path on any machine.
#pragma once

#include <string_view>

namespace cadre::engine::cluster {

extern const std::string_view kRayLauncher;

}  // namespace cadre::engine::cluster
