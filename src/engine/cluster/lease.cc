#include "engine/cluster/lease.h"

#include <cstdio>

#include "cadre/error.h"

namespace cadre::engine::cluster {

Lease::Lease(ClusterEngine& nodes) : ForwardingEngine(nodes), nodes_(nodes) {
  if (!nodes.claim()) throw EngineError("another run in this process uses the nodes; wait until it has ended");
}

Lease::~Lease() {
  try {
    nodes_.end_workers();
  } catch (const Error& error) {
    std::fprintf(stderr, "cadre: workers are left to their nodes: %s\n", error.what());
  }
  nodes_.release();
}

}  // namespace cadre::engine::cluster
