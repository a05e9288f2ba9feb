// The number of a run's workers that fit into the resources of a machine, or of a cluster.
#pragma once

#include <cstdint>
#include <string>

#include "cadre/train.h"
#include "resources/cluster.h"

namespace cadre::train {

// Returns the number of workers that fit, at most num_workers.max.
std::int64_t capacity(const Resources& machine, const ScalingConfig& scaling);
// Returns the number of workers that acquire_all() would place, at most `most`.
std::int64_t capacity(const resources::Cluster& cluster, const Resources& worker, PlacementStrategy strategy,
                      std::int64_t most);
// Returns a message for users why num_workers.min workers do not fit; empty if they do.
std::string shortage(const resources::Cluster& cluster, const ScalingConfig& scaling);

}  // namespace cadre::train
