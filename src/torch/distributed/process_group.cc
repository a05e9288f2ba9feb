#include "torch/distributed/process_group.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "torch/distributed/nccl_backend.h"
#include "torch/distributed/store.h"
#include "torch/faults.h"

namespace cadre::distributed {
namespace {

using c10d::ProcessGroup;

void add_backends(ProcessGroup& group, const c10::intrusive_ptr<c10d::Store>& store, const GroupOptions& options) {
  const auto gloo = make_gloo_backend(c10::make_intrusive<c10d::PrefixStore>("gloo", store), options.rank,
                                      options.world_size, options.timeout, options.address);
  group.setBackend(c10::DeviceType::CPU, ProcessGroup::BackendType::GLOO, gloo);
  if (options.backend == "nccl") {
    group.setBoundDeviceId(options.device);
    const auto nccl = make_nccl_backend(c10::make_intrusive<c10d::PrefixStore>("nccl", store), options.rank,
                                        options.world_size, options.timeout);
    group.setBackend(c10::DeviceType::CUDA, ProcessGroup::BackendType::NCCL, nccl);
    group.setDefaultBackend(ProcessGroup::BackendType::NCCL);
    return;
  }
  if (options.device.is_cuda()) group.setBackend(c10::DeviceType::CUDA, ProcessGroup::BackendType::GLOO, gloo);
  group.setDefaultBackend(ProcessGroup::BackendType::GLOO);
}

// Waits until all ranks are connected: a rank connected to all others could otherwise finish and exit before these
// have connected to each other.
void meet(c10d::Store& store, const GroupOptions& options) {
  const auto key = [](int rank) { return "connected/" + std::to_string(rank); };
  store.set(key(options.rank), std::vector<std::uint8_t>());
  std::vector<std::string> keys;
  for (int rank = 0; rank < options.world_size; ++rank) keys.push_back(key(rank));
  store.wait(keys, options.timeout);
}

}  // namespace

void check(const GroupOptions& options) {
  pt::Faults faults;
  if (options.world_size < 1) faults.add("a group of " + std::to_string(options.world_size) + " ranks");
  if (options.rank < 0 || options.rank >= options.world_size) {
    faults.add("rank " + std::to_string(options.rank) + " of " + std::to_string(options.world_size));
  }
  if (options.timeout.count() <= 0) faults.add("a timeout of " + std::to_string(options.timeout.count()) + " ms");
  if (options.backend != "gloo" && options.backend != "nccl") {
    faults.add("there is no backend \"" + options.backend + "\": there are gloo and nccl");
  }
  if (options.backend == "nccl" && !has_nccl()) faults.add("the backend nccl needs Cadre built with CUDA and NCCL");
  if (options.backend == "nccl" && !options.device.is_cuda()) faults.add("the backend nccl needs a GPU for each rank");
  faults.throw_if_any("process group");
}

c10::intrusive_ptr<ProcessGroup> make_process_group(std::shared_ptr<worker::KeyValueStore> values,
                                                    const GroupOptions& options) {
  check(options);
  const auto store =
      c10::make_intrusive<c10d::PrefixStore>(options.prefix, make_store(std::move(values), options.timeout));
  auto group = c10::make_intrusive<ProcessGroup>(store, options.rank, options.world_size);
  try {
    add_backends(*group, store, options);
    meet(*store, options);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw EngineError("rank " + std::to_string(options.rank) + " cannot form a group of " +
                      std::to_string(options.world_size) + " ranks with " + options.backend + ": " + error.what());
  }
  group->setGroupName(options.prefix);
  return group;
}

}  // namespace cadre::distributed
