/// \file
/// Mixed precision, and runs that give the same bits again.
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace cadre::train {

/// Seeds all random numbers of libtorch and of std::rand, and makes libtorch use algorithms that give the same bits in
/// every run; an operation that has none throws. Slower. Call it before the first operation on a GPU. A dataset that
/// draws random numbers itself needs a loader with prefetch = 0 too: otherwise they are drawn beside the model's.
void enable_reproducibility(std::uint64_t seed = 0);

/// While it lives, operations of this thread that may be computed in a shorter type are.
class [[nodiscard]] Autocast {
 public:
  /// See autocast().
  Autocast(torch::Device device, torch::Dtype dtype);
  ~Autocast();                                    ///< everything is as before
  Autocast(const Autocast&) = delete;             ///< lives where it was made
  Autocast& operator=(const Autocast&) = delete;  ///< lives where it was made

 private:
  torch::DeviceType device_;
  bool was_enabled_;
  torch::Dtype former_dtype_;
  bool was_caching_;
};

/// Mixed precision on this worker's device for as long as the returned object lives: for a forward pass and its loss,
/// not for backward(). Throws InvalidArgument where dtype is neither kBFloat16 nor kHalf.
///
///     const auto mixed_precision = train::autocast(torch::kBFloat16);
Autocast autocast(torch::Dtype dtype);

}  // namespace cadre::train
