// Nodes that a worker was given for workers of its own, such as the trial of a training run: its controller starts the
// agents there, as workers beside it, and ends them. If a node is lost, or one of the agents ends, the controller ends
// the worker itself: so nothing is told here of what becomes of nodes, and none comes in the place of one that is gone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/cluster/provider.h"

namespace cadre::engine::cluster {

class GivenNodes final : public Provider {
 public:
  // Has agents started on all nodes, with these settings (AgentSettings as JSON). Throws Error if that cannot be.
  using StartAgents = std::function<void(const std::string& settings)>;

  explicit GivenNodes(StartAgents start) : start_(std::move(start)) {}

  void request(const NodeRequest& request, const AgentStart& start) override;
  void release(std::uint64_t) override {}
  void release(std::uint64_t, std::int64_t) override {}
  void claim(const std::vector<KeptRequest>&, const std::vector<NodeProcess>&) override {}
  std::vector<ProviderEvent> take_events() override { return std::exchange(events_, {}); }
  std::optional<std::chrono::steady_clock::time_point> next_look() const override;
  std::vector<int> fds() const override { return {}; }

 private:
  StartAgents start_;
  bool were_started_ = false;
  std::vector<ProviderEvent> events_ = {};
};

}  // namespace cadre::engine::cluster
