// A group of processes that work on tensors together.
#pragma once

#include <torch/torch.h>
// torch.h comes first: these headers want its macros.
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <chrono>
#include <memory>
#include <string>

#include "run/key_value_store.h"
#include "torch/distributed/gloo_backend.h"

namespace cadre::distributed {

struct GroupOptions {
  int rank = 0;
  int world_size = 1;
  // "gloo", or "nccl" for tensors on GPUs; those on the CPU are Gloo's then too.
  std::string backend = "gloo";
  // Of each operation. Of forming the group too.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  // Before all keys in the store: two groups over one store have two of them.
  std::string prefix = "process_group";
  GlooAddress address = {.host = "127.0.0.1", .interface = ""};
  torch::Device device = torch::kCPU;  // this rank's
};

// Throws InvalidArgument that names all that is wrong.
void check(const GroupOptions& options);

// Returns when all ranks have called it. Throws InvalidArgument for bad options, EngineError when the group cannot be
// formed, and what the store throws.
c10::intrusive_ptr<c10d::ProcessGroup> make_process_group(std::shared_ptr<run::KeyValueStore> values,
                                                          const GroupOptions& options);

}  // namespace cadre::distributed
