#include "engine/cluster/given_nodes.h"

#include "cadre/error.h"
#include "engine/cluster/agent.h"

namespace cadre::engine::cluster {

void GivenNodes::request(const NodeRequest& request, const AgentStart& start) {
  if (std::exchange(were_started_, true)) {
    events_.emplace_back(Refused{request.id, "a trial has no other nodes than it was given"});
    return;
  }
  try {
    start_(start.variables.at(agent_variable));
  } catch (const Error& error) {
    events_.emplace_back(Refused{request.id, error.what()});
  }
}

std::optional<std::chrono::steady_clock::time_point> GivenNodes::next_look() const {
  if (events_.empty()) return std::nullopt;
  return std::chrono::steady_clock::now();
}

}  // namespace cadre::engine::cluster
