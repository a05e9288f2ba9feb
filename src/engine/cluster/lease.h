// The engine of one run, on nodes that stay for the next one.
#pragma once

#include <optional>
#include <vector>

#include "engine/cluster/cluster_engine.h"

namespace cadre::engine::cluster {

// Uses all nodes, one run after the other. Ends its workers when destroyed.
class Lease final : public Engine {
 public:
  // Throws EngineError if another run uses the nodes.
  explicit Lease(ClusterEngine& nodes);
  ~Lease() override;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  std::vector<Node> nodes() const override { return nodes_.nodes(); }
  Resources resources() const override { return nodes_.resources(); }
  void start(WorkerId worker, const WorkerSpec& spec) override { nodes_.start(worker, spec); }
  void answer(WorkerId worker, const channel::Answer& answer) override { nodes_.answer(worker, answer); }
  void reply(WorkerId worker, const channel::StoreReply& reply) override { nodes_.reply(worker, reply); }
  void reply(WorkerId worker, const channel::Reply& reply) override { nodes_.reply(worker, reply); }
  void kill(WorkerId worker) override { nodes_.kill(worker); }
  std::vector<Event> wait(std::optional<std::chrono::nanoseconds> timeout) override { return nodes_.wait(timeout); }
  void wake() noexcept override { nodes_.wake(); }
  Clock::duration stopped() const override { return nodes_.stopped(); }
  Clock::time_point now() const override { return nodes_.now(); }
  double wall_seconds() const override { return nodes_.wall_seconds(); }

 private:
  ClusterEngine& nodes_;
};

}  // namespace cadre::engine::cluster
