// The cluster of this process, if it has one: from options or the environment to an engine.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cadre/cluster.h"
#include "engine/cluster/cluster_engine.h"

namespace cadre::worker {

inline constexpr const char* cluster_variable = "CADRE_CLUSTER";

// Returns the options' cluster or that of the environment variable, which it removes: programs that this one starts
// have none. Later calls in this process find what the variable had, unless it was set again; an empty one is none.
// Throws InvalidArgument if the variable names no engine and no file that can be read.
std::optional<ClusterConfig> find_cluster(const std::optional<ClusterConfig>& option);

// Sets the environment variable to the name of an engine, or else to the absolute path of a file. What is neither is
// found out when the variable is read.
void set_cluster(const std::string& cluster);
// Throws InvalidArgument if the environment variable describes no cluster that could be used. Leaves it as it is.
void check_cluster();

// Returns all faults of a cluster's members; empty if there are none.
std::vector<std::string> faults_of(const ClusterConfig& cluster);

// Requests the nodes, with `command` as agents, and waits for them. `directory`: that of a run, whose lock this process
// holds; nodes that a process which was killed has left to it are taken over. Throws EngineError.
std::unique_ptr<engine::cluster::ClusterEngine> make_cluster(const ClusterConfig& cluster,
                                                             const std::vector<std::string>& command,
                                                             const std::filesystem::path& directory = {});

}  // namespace cadre::worker
