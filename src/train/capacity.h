// How many workers of a run the resources of a machine hold.
#pragma once

#include <cstdint>
#include <string>

#include "cadre/train.h"

namespace cadre::train {

// At most as many as are wanted.
std::int64_t capacity(const Resources& machine, const ScalingConfig& scaling);
// Why not even the fewest fit, for people; empty where they do.
std::string shortage(const Resources& machine, const ScalingConfig& scaling);

}  // namespace cadre::train
