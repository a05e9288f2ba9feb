// Where a trial has its resources: all of them on one node, or its bundles on several, as its placement strategy says.
// Pure: the same calls give the same places.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "resources/cluster.h"
#include "tune/trial.h"

namespace cadre::tune {

// Returns true if a trial with these needs may have bundles on several nodes.
bool may_be_parted(const resources::Cluster& cluster, const Needs& needs);

// Acquires all that a trial needs, or nothing. Returns what it has on each node: the first is that of its worker.
std::optional<std::vector<Share>> acquire(resources::Cluster& cluster, const Needs& needs);
// Returns true if acquire() would succeed. Leaves the cluster as it was.
bool has_room(resources::Cluster& cluster, const Needs& needs);

// Returns what the trial holds now on each node, that of its worker first.
std::vector<Share> shares_of(const Trial& trial);

// Does what Cluster does for one place, for all of them.
void occupy(resources::Cluster& cluster, const std::vector<Share>& shares);
void release(resources::Cluster& cluster, const std::vector<Share>& shares);
// Returns true if all nodes are ready and have room again for a worker that was parked there.
bool is_free_again(const resources::Cluster& cluster, const std::vector<Share>& shares);

// Returns all that the nodes never have for such a trial, as Cluster::shortage() does; empty if they have it.
std::string shortage(const resources::Cluster& cluster, const Needs& needs);

}  // namespace cadre::tune
