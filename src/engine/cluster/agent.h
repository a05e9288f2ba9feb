// The process of the program that runs workers on a node: a LocalEngine whose calls and events go over a connection to
// the controller, which the agent opens and, when it breaks, opens again; or over its standard input and output.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cadre/resources.h"
#include "engine/cluster/stdio.h"
#include "engine/local/local_engine.h"

namespace cadre::engine::cluster {

// Start of an agent, in the environment variable CADRE_AGENT as JSON.
struct AgentSettings {
  std::string addresses = {};    // of the controller, as to_addresses() takes them
  std::string certificate = {};  // of the controller
  std::string token = {};
  std::uint64_t request = 0;
  std::int64_t ordinal = 0;
  std::string group = {};           // of the request
  std::optional<double> cpus = {};  // of its node, for this agent; empty: all that it sees
  bool over_stdio = false;          // the session is in its standard streams; without addresses, certificate and token
  double stays_s = 0;  // how long it dials a controller that is gone, for the one that continues what that one did
  // false: a controller that is silent is not gone, and whoever has started this process ends it when it is.
  bool ends_by_itself = true;
};
inline constexpr const char* agent_variable = "CADRE_AGENT";

// Returns the settings if this process was started as an agent, and removes them from the environment: they are secret.
// Throws InvalidArgument for settings that cannot be read.
std::optional<AgentSettings> take_agent_settings();

// Returns the settings in the text of that variable. Throws InvalidArgument.
AgentSettings to_agent_settings(const std::string& text);

// Runs workers for the controller until it gives the node back, has ended, or refuses this agent. Ends this process.
// `streams`: with over_stdio. `gpu_names`: see Node.
[[noreturn]] void run_agent(const AgentSettings& settings, StandardStreams streams, local::LocalEngine& engine,
                            std::vector<std::string> gpu_names);

}  // namespace cadre::engine::cluster
