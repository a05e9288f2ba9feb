// Gloo: collective operations over TCP, on CPU tensors and, copied through the CPU, on GPU tensors.
#pragma once

#include <torch/torch.h>
// torch.h comes first: these headers need its macros.
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <string>

namespace cadre::distributed {

// The address at which Gloo listens for other ranks: an address or host name, else that of a network interface, else
// that of this machine's own name.
struct GlooAddress {
  std::string host;
  std::string interface;
};

// Makes the backend; returns when all ranks are connected with each other. Throws Gloo's exceptions as std::exception:
// no header declares a narrower type.
c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                    int world_size, std::chrono::milliseconds timeout,
                                                    const GlooAddress& address);

}  // namespace cadre::distributed
