#include "worker/gpu_claims.h"

#include <cstdlib>
#include <string_view>

namespace cadre::worker {
namespace {

const std::string claimed_key = "gpu_claims/count";
const std::string all_claimed_key = "gpu_claims/all";
const std::string obstacle_key = "gpu_claims/obstacle";

// Returns why this rank has no GPU of its own; empty if it has one.
std::string obstacle_of(KeyValueStore& store, const GroupPlace& place, const std::string& gpu) {
  const std::string own = std::to_string(place.world_rank);
  if (gpu.empty()) return "rank " + own + " has no GPU";
  const std::string node = std::to_string(place.node_rank);
  const std::string first = store.compare_and_set("gpu_claims/" + node + "/" + gpu, "", own);
  return first == own ? "" : "ranks " + first + " and " + own + " share a GPU of node " + node;
}

}  // namespace

std::string first_visible_gpu() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return "0";
  const std::string_view text = visible;
  return std::string(text.substr(0, text.find(',')));
}

std::string claim_gpu(KeyValueStore& store, const GroupPlace& place, const std::string& gpu,
                      std::chrono::milliseconds timeout) {
  if (const std::string obstacle = obstacle_of(store, place, gpu); !obstacle.empty())
    store.compare_and_set(obstacle_key, "", obstacle);  // the first one stands for all
  if (store.add(claimed_key, 1) == place.world_size) store.set(all_claimed_key, "");
  const std::string keys[] = {all_claimed_key};
  store.wait(keys, timeout);
  const std::string obstacle[] = {obstacle_key};
  return store.contains(obstacle) ? store.get(obstacle_key, timeout) : "";
}

}  // namespace cadre::worker
