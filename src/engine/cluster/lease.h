// The engine of one run, on nodes that stay for the next one.
#pragma once

#include <filesystem>
#include <vector>

#include "engine/cluster/cluster_engine.h"
#include "engine/forwarding_engine.h"

namespace cadre::engine::cluster {

// Uses all nodes, one run after the other. Ends its workers when destroyed.
class Lease final : public ForwardingEngine {
 public:
  // `directory`: of the run, which finds the nodes there after this process was killed; empty: it has none. `marks`:
  // see ClusterEngine::use_nodes_that_see. Throws EngineError if another run uses the nodes, and as that does.
  Lease(ClusterEngine& nodes, const std::filesystem::path& directory, const std::vector<std::filesystem::path>& marks);
  ~Lease() override;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  // Ends the workers before that; no other one must be started then.
  void end_workers();
  std::filesystem::path directory_of_workers(NodeId) const override { return seen_.parent_path(); }
  // Returns the mark that nodes see; empty: none.
  const std::filesystem::path& seen() const { return seen_; }

 private:
  ClusterEngine& nodes_;
  std::filesystem::path seen_ = {};  // the mark that nodes must see
  bool has_ended_workers_ = false;
};

}  // namespace cadre::engine::cluster
