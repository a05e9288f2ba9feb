// The number of a run's workers that fit into the resources of a machine.
#pragma once

#include <cstdint>
#include <string>

#include "cadre/train.h"

namespace cadre::train {

// Returns the number of workers that fit, at most num_workers.max.
std::int64_t capacity(const Resources& machine, const ScalingConfig& scaling);
// Returns a message for users why num_workers.min workers do not fit; empty if they do.
std::string shortage(const Resources& machine, const ScalingConfig& scaling);

}  // namespace cadre::train
