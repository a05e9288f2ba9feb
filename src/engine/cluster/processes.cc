#include "engine/cluster/processes.h"

#include <signal.h>

#include <string>

#include "cadre/error.h"
#include "engine/cluster/ordinal.h"
#include "engine/cluster/variables.h"

namespace cadre::engine::cluster {
namespace {

std::string how_it_ended(const Command& agent) {
  std::string text = agent.end();
  if (!agent.errors().empty()) text += ": " + std::string(agent.errors());
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

void Processes::request(const NodeRequest& request, const AgentStart& start) {
  for (std::int64_t ordinal = 0; ordinal < request.nodes; ++ordinal) {
    Variables variables = start.variables;
    variables.merge(own_variables());  // which do not replace those of the start
    variables[kOrdinalVariable] = std::to_string(ordinal);
    try {
      agents_[{request.id, ordinal}] = std::make_unique<Command>(CommandStart{.arguments = start.command,
                                                                              .environment = as_environment(variables),
                                                                              .directory = start.directory,
                                                                              .most_output = 0});
    } catch (const EngineError& error) {
      agents_.erase({request.id, ordinal});
      events_.emplace_back(AgentEnded{request.id, ordinal, error.what()});
    }
  }
}

void Processes::release(std::uint64_t request) {
  for (const auto& [place, agent] : agents_) {
    if (place.first == request) agent->kill(SIGKILL);
  }
}

void Processes::release(std::uint64_t request, std::int64_t ordinal) {
  const auto found = agents_.find({request, ordinal});
  if (found != agents_.end()) found->second->kill(SIGKILL);
}

std::vector<ProviderEvent> Processes::take_events() {
  std::erase_if(agents_, [this](const auto& entry) {
    const auto& [place, agent] = entry;
    if (!agent->update()) return false;
    events_.emplace_back(AgentEnded{place.first, place.second, how_it_ended(*agent)});
    return true;
  });
  return std::exchange(events_, {});
}

std::vector<int> Processes::fds() const {
  std::vector<int> all;
  for (const auto& [place, agent] : agents_) {
    for (const int descriptor : agent->fds()) all.push_back(descriptor);
  }
  return all;
}

}  // namespace cadre::engine::cluster
