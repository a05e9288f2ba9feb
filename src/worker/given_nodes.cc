#include "worker/given_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "cadre/error.h"
#include "cadre/stored.h"
#include "engine/cluster/agent.h"
#include "engine/cluster/given_nodes.h"
#include "worker/entries.h"
#include "worker/root_engine.h"

namespace cadre::worker {
namespace {

// A node whose agent is there and cannot be reached for so long is given up. The worker's controller knows sooner of
// nodes that are cut off from it.
constexpr std::chrono::seconds kPatience{60};

struct Given {
  std::vector<std::string> names = {};
  channel::WorkerEnd* controller = nullptr;
};
Given& given() {
  static Given instance;
  return instance;
}

void start_agents(const std::string& settings) {
  const channel::Reply reply =
      given().controller->call(channel::Request{.content = to_stored(StartAgents{.settings = settings})});
  if (!reply.error.empty()) throw EngineError(reply.error);
}

Value run_agent(channel::WorkerEnd&, const Value& payload) {
  const auto assignment = from_value<AgentAssignment>(payload);
  engine::cluster::AgentSettings settings = engine::cluster::to_agent_settings(assignment.settings);
  settings.ordinal = assignment.ordinal;
  set_root_resources(assignment.resources);
  const std::unique_ptr<engine::local::LocalEngine> engine = make_local_engine();
  engine::cluster::run_agent(settings, {}, *engine, assignment.gpu_names);
}

[[maybe_unused]] const bool is_registered = register_entry(agent_entry, run_agent);

}  // namespace

void set_given_nodes(std::vector<std::string> names, channel::WorkerEnd& controller) {
  given() = {std::move(names), &controller};
}

bool has_given_nodes() { return !given().names.empty(); }

std::unique_ptr<engine::cluster::ClusterEngine> make_cluster_of_given_nodes() {
  const std::vector<std::string>& names = given().names;
  auto nodes = std::make_unique<engine::cluster::ClusterEngine>(
      std::make_unique<engine::cluster::GivenNodes>(start_agents),
      engine::cluster::ClusterOptions{.requests = {{.nodes = std::ssize(names), .all_or_none = true}},
                                      .patience = kPatience,
                                      .ends_agents = false});
  if (const auto there = nodes->nodes(); there.size() < names.size()) {
    std::string missing;
    for (const std::string& name : names) {
      if (std::ranges::find(there, name, &engine::Node::name) != there.end()) continue;
      missing += (missing.empty() ? "" : ", ") + name;
    }
    throw EngineError(
        fmt::format("the agents of this trial on {} do not reach its process; its nodes must reach each "
                    "other, as the workers of a training run do",
                    missing));
  }
  return nodes;
}

}  // namespace cadre::worker
