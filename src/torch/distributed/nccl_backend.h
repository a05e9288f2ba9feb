// NCCL: collective operations between GPUs. Available if Cadre was built with a CUDA build of libtorch and NCCL's
// header.
#pragma once

#include <torch/torch.h>
// torch.h comes first: these headers need its macros.
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>

namespace cadre::distributed {

bool has_nccl();

// Makes the backend; requires has_nccl(), else throws InvalidArgument. The first operation makes the connections.
c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                    int world_size, std::chrono::milliseconds timeout);

}  // namespace cadre::distributed
