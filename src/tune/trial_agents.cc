#include "tune/trial_agents.h"

#include <fmt/format.h>

#include <limits>

#include "cadre/error.h"
#include "cadre/stored.h"
#include "resources/gpu_kinds.h"
#include "resources/gpus.h"

namespace cadre::tune {
namespace {

// No trial has this index: the numbers of agents.
constexpr auto kAgents = std::numeric_limits<TrialIndex>::max();

// Returns the resources and the GPUs that an agent has for workers; `nodes`: of the engine.
worker::AgentAssignment agent_assignment(const Share& share, const Resources& machine,
                                         const std::vector<engine::Node>& nodes) {
  resources::Gpus gpus = share.place.gpus;
  // The GPUs of the trial's worker itself come first; a share of one is not told apart.
  if (share.held.gpus > 1)
    gpus.erase(gpus.begin(), gpus.begin() + static_cast<std::ptrdiff_t>(share.held.gpus - share.of_workers->gpus));
  worker::AgentAssignment assignment{.resources = resources::with_kinds(*share.of_workers, machine, gpus)};
  for (const int gpu : gpus) assignment.gpu_names.push_back(resources::visible_devices({gpu}, nodes, share.place.node));
  return assignment;
}

bool ended_in_order(const engine::Exit& exit) { return exit.kind == engine::Exit::Kind::code && exit.value == 0; }

}  // namespace

engine::WorkerId worker_id(TrialIndex trial, std::int64_t attempt) {
  return std::uint64_t{trial} << 32 | static_cast<std::uint32_t>(attempt);
}
TrialIndex trial_of(engine::WorkerId worker) { return static_cast<TrialIndex>(worker >> 32); }
std::int64_t attempt_of(engine::WorkerId worker) { return static_cast<std::int64_t>(worker & 0xffffffffu); }

void TrialAgents::begin(const Launch& launch) {
  if (launch.shares.empty()) return;
  Group& group = groups_[worker_id(launch.trial, launch.attempt)];
  group.shares = launch.shares;
  group.machines = launch.machines;
}

bool TrialAgents::take(const engine::Event& event) {
  if (const auto* received = std::get_if<engine::Received>(&event)) return take(*received);
  if (const auto* exited = std::get_if<engine::Exited>(&event)) return take(*exited);
  return false;
}

bool TrialAgents::take(const engine::Received& received) {
  if (trial_of(received.worker) == kAgents) return true;  // its end says all
  const auto found = groups_.find(received.worker);
  if (found == groups_.end()) return false;
  if (const auto* request = std::get_if<channel::Request>(&received.message)) {
    start_agents(received.worker, found->second, *request);
    return true;
  }
  if (channel::is_last(received.message)) {
    found->second.has_last_word = true;
    kill_agents(found->second);
  }
  return false;
}

void TrialAgents::start_agents(engine::WorkerId worker, Group& group, const channel::Request& request) {
  channel::Reply reply{.call = request.call};
  try {
    const auto asked = from_value<worker::StartAgents>(request.content);
    if (!group.agents.empty()) throw EngineError("the trial has its agents already");
    const std::vector<engine::Node> nodes = engine_.nodes();
    std::int64_t ordinal = 0;
    for (std::size_t i = 0; i < group.shares.size(); ++i) {
      const Share& share = group.shares[i];
      if (!share.of_workers) continue;
      worker::AgentAssignment assignment = agent_assignment(share, group.machines[i], nodes);
      assignment.settings = asked.settings;
      assignment.ordinal = ordinal++;
      const engine::WorkerId agent = worker_id(kAgents, ++agents_so_far_);
      group.agents[agent] = share.place.node;
      workers_of_agents_[agent] = worker;
      start_(agent, trial_of(worker), share.place.node, to_stored(assignment));
    }
  } catch (const Error& error) {
    reply.error = error.what();
  }
  engine_.reply(worker, reply);
}

bool TrialAgents::take(const engine::Exited& exited) {
  if (const auto agent = workers_of_agents_.find(exited.worker); agent != workers_of_agents_.end()) {
    const engine::WorkerId worker = agent->second;
    workers_of_agents_.erase(agent);
    Group& group = groups_.at(worker);
    const engine::NodeId node = group.agents.extract(exited.worker).mapped();
    // After a run the worker gives its nodes back.
    if (!group.has_last_word && !group.first && !ended_in_order(exited.exit)) {
      group.first = WorkerEnded{trial_of(worker), attempt_of(worker), exited.exit, node};
      std::string& detail = group.first->exit.detail;
      detail = fmt::format("the agent for its workers on another node{}{}", detail.empty() ? "" : ": ", detail);
      engine_.kill(worker);
      kill_agents(group);
    }
    end_if_complete(worker);
    return true;
  }
  const auto group = groups_.find(exited.worker);
  if (group == groups_.end()) return false;
  group->second.worker = exited.exit;
  group->second.has_last_word = true;
  kill_agents(group->second);
  end_if_complete(exited.worker);
  return true;
}

void TrialAgents::kill_agents(const Group& group) {
  for (const auto& [agent, node] : group.agents) engine_.kill(agent);
}

void TrialAgents::end_if_complete(engine::WorkerId worker) {
  const auto found = groups_.find(worker);
  Group& group = found->second;
  if (!group.worker || !group.agents.empty()) return;
  ends_.push_back(group.first ? *std::move(group.first)
                              : WorkerEnded{trial_of(worker), attempt_of(worker), *std::move(group.worker), {}});
  groups_.erase(found);
}

}  // namespace cadre::tune
