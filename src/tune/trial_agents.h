// The processes of trials that have several nodes. Beside the trial's worker there is an agent on each node where it
// may start workers (worker/given_nodes.h), once it asks for them. All of them are one worker for the core: the end of
// the worker ends the agents; if an agent ends, the others are killed; and the core is told of one end, when all are
// gone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "tune/events.h"
#include "worker/given_nodes.h"

namespace cadre::tune {

// The worker of a trial's attempt, as the engine numbers it.
engine::WorkerId worker_id(TrialIndex trial, std::int64_t attempt);
TrialIndex trial_of(engine::WorkerId worker);
std::int64_t attempt_of(engine::WorkerId worker);

class TrialAgents {
 public:
  // Starts an agent as this worker, with its payload, for a trial.
  using Start = std::function<void(engine::WorkerId agent, TrialIndex trial, engine::NodeId node, Value payload)>;

  TrialAgents(engine::Engine& engine, Start start) : engine_(engine), start_(std::move(start)) {}

  // Call when a worker is started, or has another assignment: remembers what its trial has on several nodes.
  void begin(const Launch& launch);

  // Handles what concerns agents; returns false for all other events, which are the caller's.
  bool take(const engine::Event& event);
  // Returns the ends of workers that are complete since the last call.
  std::vector<WorkerEnded> take_ends() { return std::exchange(ends_, {}); }

 private:
  struct Group {
    std::vector<Share> shares = {};  // of the trial, with the resources of their nodes
    std::vector<Resources> machines = {};
    std::map<engine::WorkerId, engine::NodeId> agents = {};  // that have not ended
    bool has_last_word = false;                              // true: the worker has sent its last message, or has ended
    std::optional<WorkerEnded> first = {};    // the end that all others follow from, if it was an agent's
    std::optional<engine::Exit> worker = {};  // its end
  };

  bool take(const engine::Received& received);
  bool take(const engine::Exited& exited);
  void start_agents(engine::WorkerId worker, Group& group, const channel::Request& request);
  void kill_agents(const Group& group);
  void end_if_complete(engine::WorkerId worker);

  engine::Engine& engine_;
  Start start_;
  std::uint32_t agents_so_far_ = 0;
  std::map<engine::WorkerId, Group> groups_ = {};  // by the trial's worker
  std::map<engine::WorkerId, engine::WorkerId> workers_of_agents_ = {};
  std::vector<WorkerEnded> ends_ = {};
};

}  // namespace cadre::tune
