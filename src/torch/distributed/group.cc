#include "torch/distributed/group.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>

#include "cadre/error.h"
#include "torch/distributed/nccl_backend.h"
#include "torch/distributed/process_group.h"
#include "worker/gpu_claims.h"
#include "worker/group_network.h"

namespace cadre::distributed {
namespace {

// The group of this process, global because the training function's calls are not given it.
struct Membership {
  std::mutex mutex;
  std::optional<Group> group;
};

Membership& membership() {
  static Membership instance;
  return instance;
}

void replace_group(std::optional<Group> group) {
  {
    const std::lock_guard lock(membership().mutex);
    std::swap(membership().group, group);
  }
  // The former group is destroyed here, outside the lock: Gloo waits for its threads.
  if (group && group->process_group && group->device.is_cuda()) group->process_group->shutdown();
}

GlooAddress gloo_address(const worker::GroupPlace& place, const JoinOptions& options) {
  if (place.num_nodes == 1) return {.host = "127.0.0.1", .interface = ""};
  if (!options.interface.empty()) return {.host = "", .interface = options.interface};
  const char* const interfaces = std::getenv(worker::kGlooInterface);  // a list, as PyTorch reads it
  const std::string all = interfaces == nullptr ? "" : interfaces;
  return {.host = "", .interface = all.substr(0, all.find(','))};
}

// Returns the backend of a group of several ranks: the one asked for, or NCCL where each rank has a GPU of its own.
std::string choose_backend(worker::KeyValueStore& store, const worker::GroupPlace& place, const JoinOptions& options,
                           torch::Device device) {
  if (options.backend == "gloo" || !has_nccl()) return "gloo";
  const std::string obstacle =
      worker::claim_gpu(store, place, device.is_cuda() ? worker::first_visible_gpu() : "", options.timeout);
  if (obstacle.empty()) return "nccl";
  if (options.backend.empty()) return "gloo";
  throw InvalidArgument("the backend nccl needs a GPU for each rank: " + obstacle + "; the backend gloo does not");
}

}  // namespace

torch::Device own_device() {
  return torch::cuda::is_available() ? torch::Device(torch::kCUDA, 0) : torch::Device(torch::kCPU);
}

void join_group(std::shared_ptr<worker::KeyValueStore> store, const worker::GroupPlace& place,
                const JoinOptions& options) {
  leave_group();
  Group group{.rank = place.world_rank,
              .world_size = place.world_size,
              .local_rank = place.local_rank,
              .device = own_device(),
              .checks_calls = options.check_collectives};
  if (group.device.is_cuda()) c10::impl::VirtualGuardImpl(c10::kCUDA).setDevice(group.device);
  GroupOptions group_options{.rank = place.world_rank,
                             .world_size = place.world_size,
                             .backend = options.backend.empty() ? "gloo" : options.backend,
                             .timeout = options.timeout,
                             .address = gloo_address(place, options),
                             .device = group.device};
  check(group_options);
  if (place.world_size > 1) {
    group_options.backend = choose_backend(*store, place, options, group.device);
    group.process_group = make_process_group(std::move(store), group_options);
  }
  replace_group(std::move(group));
}

void leave_group() { replace_group(std::nullopt); }

Group current_group() {
  const std::lock_guard lock(membership().mutex);
  return membership().group ? *membership().group : Group{.device = own_device()};
}

}  // namespace cadre::distributed
