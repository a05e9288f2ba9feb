// A node's number in its request, which what starts an agent adds to its environment.
#pragma once

#include <cstdint>
#include <optional>

namespace cadre::engine::cluster {

inline constexpr const char* kOrdinalVariable = "CADRE_AGENT_ORDINAL";

// Returns the number of this process's node, from 0; empty if this process was not started as an agent.
std::optional<std::int64_t> agent_ordinal();

}  // namespace cadre::engine::cluster
