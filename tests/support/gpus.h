// Tests that need GPUs.
#pragma once

#include <cstdlib>

#include "resources/gpus.h"

namespace cadre::test_support {

// Returns true under `make test-gpu`, in which a test that finds no GPU fails.
inline bool gpu_is_required() { return std::getenv("CADRE_REQUIRE_GPU") != nullptr; }

}  // namespace cadre::test_support

// Skips the test if there are fewer GPUs, and fails it instead if GPUs are required and there is none. Does not ask
// CUDA, because ranks could not be forked from this process afterwards.
#define CADRE_NEEDS_GPUS(count)                                                                    \
  do {                                                                                             \
    const int gpus = ::cadre::resources::count_gpus();                                             \
    if (gpus == 0 && ::cadre::test_support::gpu_is_required()) FAIL() << "there is no NVIDIA GPU"; \
    if (gpus < (count)) GTEST_SKIP() << "needs " << (count) << " GPUs, and there are " << gpus;    \
  } while (false)
