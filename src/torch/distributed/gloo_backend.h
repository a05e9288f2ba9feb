// Gloo: collective operations on CPU tensors (and on those of GPUs, through the CPU) over TCP.
#pragma once

#include <torch/torch.h>
// torch.h comes first: these headers want its macros.
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <string>

namespace cadre::distributed {

// Where Gloo listens for the other ranks: an address or a host's name, or else a network interface, or else what this
// machine's own name stands for.
struct GlooAddress {
  std::string host;
  std::string interface;
};

// Returns when all ranks are connected with each other. Throws what Gloo throws: std::exception, no narrower type has a
// header.
c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                    int world_size, std::chrono::milliseconds timeout,
                                                    const GlooAddress& address);

}  // namespace cadre::distributed
