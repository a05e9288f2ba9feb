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
  marks_[request.id] = start.mark;
  for (std::int64_t ordinal = 0; ordinal < request.nodes; ++ordinal) {
    Variables variables = start.variables;
    variables.merge(own_variables());  // which do not replace those of the start
    variables[kOrdinalVariable] = std::to_string(ordinal);
    try {
      auto agent = std::make_unique<Command>(CommandStart{.arguments = start.command,
                                                          .environment = as_environment(variables),
                                                          .directory = start.directory,
                                                          .carries_session = start.over_stdio,
                                                          .death_signal = start.outlives ? 0 : SIGKILL,
                                                          .most_output = 0});
      if (start.over_stdio) connections_.push_back({request.id, ordinal, agent->take_session()});
      agents_[{request.id, ordinal}] = std::move(agent);
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

void Processes::claim(const std::vector<KeptRequest>& requests, const std::vector<NodeProcess>& processes) {
  std::map<Place, std::unique_ptr<Command>> found;
  for (const NodeProcess& process : processes) {
    found[{process.request, process.ordinal.value_or(0)}] =
        Command::take_over(static_cast<::pid_t>(process.pid), process.mark);
    marks_[process.request] = process.mark;
  }
  for (const auto& [request, ended] : requests) {
    for (std::int64_t ordinal = 0; ordinal < request.nodes; ++ordinal) {
      if (ended.contains(ordinal)) continue;
      std::unique_ptr<Command> agent = std::move(found[{request.id, ordinal}]);
      if (agent == nullptr) {
        events_.emplace_back(AgentEnded{request.id, ordinal, "its process does not exist any more"});
      } else {
        agents_[{request.id, ordinal}] = std::move(agent);
      }
    }
  }
  // The others in `found` are killed as it is destroyed.
}

std::vector<NodeProcess> Processes::processes() const {
  std::vector<NodeProcess> all;
  for (const auto& [place, agent] : agents_) {
    if (!agent->has_ended())
      all.push_back(
          {.request = place.first, .ordinal = place.second, .pid = agent->process(), .mark = marks_.at(place.first)});
  }
  return all;
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

std::optional<std::chrono::steady_clock::time_point> Processes::next_look() const {
  if (events_.empty()) return std::nullopt;
  return std::chrono::steady_clock::now();
}

std::vector<int> Processes::fds() const {
  std::vector<int> all;
  for (const auto& [place, agent] : agents_) {
    for (const int descriptor : agent->fds()) all.push_back(descriptor);
  }
  return all;
}

}  // namespace cadre::engine::cluster
