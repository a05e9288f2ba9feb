#include "engine/cluster/lease.h"

#include <cstdio>
#include <utility>

#include "cadre/error.h"

namespace cadre::engine::cluster {

Lease::Lease(ClusterEngine& nodes, const std::filesystem::path& directory,
             const std::vector<std::filesystem::path>& marks)
    : ForwardingEngine(nodes), nodes_(nodes) {
  if (!nodes.claim()) throw EngineError("another run in this process uses the nodes; wait until it has ended");
  try {
    nodes.keep_in(directory);
    nodes.begin_run();
    seen_ = nodes.use_nodes_that_see(marks);
  } catch (...) {
    nodes.keep_in({});
    nodes.use_nodes_that_see({});
    nodes.release();
    throw;
  }
}

Lease::~Lease() {
  end_workers();
  nodes_.set_demand({});
  nodes_.keep_in({});
  nodes_.use_nodes_that_see({});
  nodes_.release();
}

void Lease::end_workers() {
  if (std::exchange(has_ended_workers_, true)) return;
  try {
    nodes_.end_workers();
  } catch (const Error& error) {
    std::fprintf(stderr, "cadre: workers are left to their nodes: %s\n", error.what());
  }
}

}  // namespace cadre::engine::cluster
