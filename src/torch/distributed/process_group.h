// A group of processes that run collective operations on tensors.
#pragma once

#include <torch/torch.h>
// torch.h comes first: these headers need its macros.
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <chrono>
#include <memory>
#include <string>

#include "torch/distributed/gloo_backend.h"
#include "worker/key_value_store.h"

namespace cadre::distributed {

struct GroupOptions {
  int rank = 0;
  int world_size = 1;
  // "gloo", or "nccl" for tensors on GPUs, with Gloo for tensors on the CPU.
  std::string backend = "gloo";
  // Limit of each operation, and of forming the group.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  // Prefix of all keys in the store: two groups over one store need different prefixes.
  std::string prefix = "process_group";
  GlooAddress address = {.host = "127.0.0.1", .interface = ""};
  torch::Device device = torch::kCPU;  // of this rank
};

// Throws InvalidArgument that lists all faults.
void check(const GroupOptions& options);

// Makes the group; returns when all ranks have called it. Throws InvalidArgument for bad options, EngineError if the
// group cannot be formed, and the store's exceptions.
c10::intrusive_ptr<c10d::ProcessGroup> make_process_group(std::shared_ptr<worker::KeyValueStore> values,
                                                          const GroupOptions& options);

}  // namespace cadre::distributed
