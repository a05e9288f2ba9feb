// The engine of one run, on nodes that stay for the next one.
#pragma once

#include <filesystem>

#include "engine/cluster/cluster_engine.h"
#include "engine/forwarding_engine.h"

namespace cadre::engine::cluster {

// Uses all nodes, one run after the other. Ends its workers when destroyed.
class Lease final : public ForwardingEngine {
 public:
  // `directory`: of the run, which finds the nodes there after this process was killed; empty: it has none. `mark`: a
  // file there by which nodes show that they see it; empty: they need not. Throws EngineError if another run uses the
  // nodes, or if they do not see it, and StorageError.
  Lease(ClusterEngine& nodes, const std::filesystem::path& directory, const std::filesystem::path& mark);
  ~Lease() override;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

 private:
  ClusterEngine& nodes_;
};

}  // namespace cadre::engine::cluster
