// The options of requests for nodes of Ray, and the lines of JSON between a controller and its launcher
// (ray_launcher.py). Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/cluster/provider.h"
#include "engine/cluster/variables.h"

namespace cadre::engine::cluster::ray {

// Returns all faults of a request in one text; empty if there are none.
std::string faults_of(const NodeRequest& request);

// A launcher is for requests of one Ray cluster, with one Python.
struct LauncherKind {
  std::string python = {};
  std::string address = {};  // empty: RAY_ADDRESS, or the cluster on this machine
  bool outlives = false;     // see AgentStart
  bool operator==(const LauncherKind&) const = default;
};
// Names the Python of the request's options, or the one in which the program itself is written, or the one in PATH.
LauncherKind launcher_kind(const NodeRequest& request, const AgentStart& start);

// The variable in a launcher's environment that has its mark.
inline constexpr const char* kMarkVariable = "CADRE_RAY_LAUNCHER";
std::vector<std::string> launcher_command(const LauncherKind& kind);
// Returns the name of the socket at which a launcher waits for the next controller, in the abstract namespace.
std::string socket_name(std::int64_t launcher);

// Returns the environment of agents: without what describes this machine or session, or is Ray's.
Variables agent_variables(const Variables& own, const Variables& added);

// Lines to a launcher. `ordinals`: the nodes of the request that are asked for.
std::string request_line(const NodeRequest& request, const std::vector<std::int64_t>& ordinals, const AgentStart& start,
                         const Variables& own);
std::string release_line(std::uint64_t request, std::int64_t ordinal);
std::string look_line();
std::string continue_line(const std::string& mark);

// Longest line that a launcher writes.
inline constexpr std::size_t kMostLine = std::size_t{1} << 20;

using Node = std::pair<std::uint64_t, std::int64_t>;  // request and ordinal
// The launcher is connected with Ray.
struct Ready {};
// The launcher cannot connect.
struct Failed {
  std::string reason = {};
};
// The nodes that the launcher has or waits for: its answer to a controller that continues.
struct Has {
  std::vector<Node> places = {};
};
// The agent of a node runs.
struct Started {
  Node place = {};
};
using Said = std::variant<Ready, Failed, Has, Started, Queued, Refused, AgentEnded, NodeEnds>;
// Parses a line of a launcher; `now` is the time from which its seconds count. Throws Error for any other text.
Said parse_said(std::string_view line, std::chrono::steady_clock::time_point now);

}  // namespace cadre::engine::cluster::ray
