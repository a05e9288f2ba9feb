// A node's number in its request, and how many of its CPUs are for the agent: what starts an agent adds them to its
// environment.
#pragma once

#include <cstdint>
#include <optional>

namespace cadre::engine::cluster {

inline constexpr const char* kOrdinalVariable = "CADRE_AGENT_ORDINAL";
// Only where nothing else keeps the agent from the other CPUs.
inline constexpr const char* kCpusVariable = "CADRE_AGENT_CPUS";

// Returns the number of this process's node, from 0; empty if this process was not started as an agent.
std::optional<std::int64_t> agent_ordinal();
// Returns the CPUs that this process may use of its node; empty: all that it sees.
std::optional<double> agent_cpus();

}  // namespace cadre::engine::cluster
