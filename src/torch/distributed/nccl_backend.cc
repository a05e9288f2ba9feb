#include "torch/distributed/nccl_backend.h"

#include "cadre/error.h"

#ifdef USE_C10D_NCCL

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <cstdlib>

namespace cadre::distributed {
namespace {

// Enables NCCL's error handling: without it a rank waits forever when another one has died. Respects the older
// variable names too.
void let_errors_end_operations() {
  for (const char* name : {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_BLOCKING_WAIT",
                           "NCCL_BLOCKING_WAIT"}) {
    if (std::getenv(name) != nullptr) return;
  }
  ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1", 0);
}

}  // namespace

bool has_nccl() { return true; }

c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                    int world_size, std::chrono::milliseconds timeout) {
  let_errors_end_operations();
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, world_size, options);
}

}  // namespace cadre::distributed

#else

namespace cadre::distributed {

bool has_nccl() { return false; }

c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>&, int, int,
                                                    std::chrono::milliseconds) {
  throw InvalidArgument("this build of Cadre has no NCCL");
}

}  // namespace cadre::distributed

#endif
