/// \file
/// Mixed precision and reproducibility.
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace cadre::train {

/// Seeds all random numbers of libtorch and of std::rand, and makes libtorch use algorithms that give the same bits in
/// every run; an operation without such an algorithm throws. Slower. Call it before the first operation on a GPU. A
/// dataset that draws random numbers itself also needs a loader with prefetch = 0, for its draws interleave with the
/// model's otherwise; those of train::transform do not.
void enable_reproducibility(std::uint64_t seed = 0);

/// A guard that computes suitable operations of this thread in a shorter type until it is destroyed.
class [[nodiscard]] Autocast {
 public:
  /// Begins autocasting: see autocast().
  Autocast(torch::Device device, torch::Dtype dtype);
  ~Autocast();                                    ///< restores the previous state
  Autocast(const Autocast&) = delete;             ///< neither copied nor moved
  Autocast& operator=(const Autocast&) = delete;  ///< neither copied nor moved

 private:
  torch::DeviceType device_;
  bool was_enabled_;
  torch::Dtype former_dtype_;
  bool was_caching_;
};

/// Enables mixed precision on this worker's device while the returned object exists: for a forward pass and its loss,
/// not for backward(). Throws InvalidArgument unless dtype is kBFloat16 or kHalf.
///
///     const auto mixed_precision = train::autocast(torch::kBFloat16);
Autocast autocast(torch::Dtype dtype);

}  // namespace cadre::train
