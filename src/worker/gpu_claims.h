// Tells before a process group is made whether each of its ranks has a GPU of its own: NCCL refuses ranks that share
// one, as those with a share of a GPU do.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "worker/group_backend.h"
#include "worker/key_value_store.h"

namespace cadre::worker {

// Returns the name of the first GPU that this process sees, as CUDA_VISIBLE_DEVICES says it: "0" where it is not set.
// Equal for two processes of a machine if they have the same GPU.
std::string first_visible_gpu();

// Claims a rank's GPU (empty: it has none) and waits for the claims of the others. Each rank calls it once per store.
// Returns the same text in all ranks: why they cannot have a GPU each, such as "ranks 0 and 1 share a GPU of node 0";
// empty if they can. Throws the store's exceptions, and Error if not all ranks have claimed in time.
std::string claim_gpu(KeyValueStore& store, const GroupPlace& place, const std::string& gpu,
                      std::chrono::milliseconds timeout);

}  // namespace cadre::worker
