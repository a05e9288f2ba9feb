#include "cadre/train_torch/precision.h"

#include <ATen/autocast_mode.h>

#include <cstdlib>
#include <string>

#include "cadre/error.h"
#include "cadre/train_torch/group.h"

namespace cadre::train {

Autocast::Autocast(torch::Device device, torch::Dtype dtype)
    : device_(device.type()),
      was_enabled_(at::autocast::is_autocast_enabled(device_)),
      former_dtype_(at::autocast::get_autocast_dtype(device_)),
      was_caching_(at::autocast::is_autocast_cache_enabled()) {
  if (dtype != torch::kBFloat16 && dtype != torch::kHalf) {
    throw InvalidArgument("autocast: the type is kBFloat16 or kHalf, not " + std::string(c10::toString(dtype)));
  }
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::set_autocast_dtype(device_, dtype);
  at::autocast::set_autocast_cache_enabled(true);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, former_dtype_);
  at::autocast::set_autocast_cache_enabled(was_caching_);
}

Autocast autocast(torch::Dtype dtype) { return Autocast(get_device(), dtype); }

void enable_reproducibility(std::uint64_t seed) {
  torch::manual_seed(seed);
  std::srand(static_cast<unsigned>(seed));
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  at::globalContext().setBenchmarkCuDNN(false);
  // Required by cuBLAS for deterministic results.
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 1);
}

}  // namespace cadre::train
