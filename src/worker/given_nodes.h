// A worker that was given several nodes for workers of its own: on each of them runs an agent, a worker beside it, and
// its root engine is a cluster of these nodes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cadre/resources.h"
#include "channel/worker_end.h"
#include "engine/cluster/cluster_engine.h"

namespace cadre::worker {

// Name of the entry that runs such an agent, in a worker that may start workers.
inline constexpr std::string_view agent_entry = "cadre::agent";

// The payload of its assignment.
struct AgentAssignment {
  std::string settings = {};                // engine::cluster::AgentSettings as JSON
  std::int64_t ordinal = 0;                 // of the node among those of the worker
  Resources resources = {};                 // for workers there
  std::vector<std::string> gpu_names = {};  // see engine::Node
};

// The request by which the worker has its controller start all agents.
struct StartAgents {
  std::string settings = {};
};

// In a worker that may start workers: sets the nodes on which it may, by their names. `controller` must live as long as
// the process.
void set_given_nodes(std::vector<std::string> names, channel::WorkerEnd& controller);
// Returns true if that was called.
bool has_given_nodes();

// Has agents started on all of these nodes, and waits for them. Throws EngineError if one does not come.
std::unique_ptr<engine::cluster::ClusterEngine> make_cluster_of_given_nodes();

}  // namespace cadre::worker
