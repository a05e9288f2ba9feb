// The engine of one run, on nodes that stay for the next one.
#pragma once

#include "engine/cluster/cluster_engine.h"
#include "engine/forwarding_engine.h"

namespace cadre::engine::cluster {

// Uses all nodes, one run after the other. Ends its workers when destroyed.
class Lease final : public ForwardingEngine {
 public:
  // Throws EngineError if another run uses the nodes.
  explicit Lease(ClusterEngine& nodes);
  ~Lease() override;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

 private:
  ClusterEngine& nodes_;
};

}  // namespace cadre::engine::cluster
