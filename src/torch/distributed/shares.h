// The examples of an epoch, and which of them a rank has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cadre/train_torch/distributed_sampler.h"

namespace cadre::distributed {

// Returns 0 to size - 1, shuffled as Python's torch.randperm does with a generator of this seed.
std::vector<std::size_t> permutation(std::size_t size, std::uint64_t seed);
// Returns 0 to size - 1.
std::vector<std::size_t> in_order(std::size_t size);

// Returns how many of `count` things a rank has.
std::size_t share_of(std::size_t count, std::size_t world_size, std::size_t rank, train::Remainder remainder);

// Returns a rank's share of an order: from `begin` on every world_size-th, beginning at the rank. Padding repeats the
// whole order as often as needed, so the rest of an epoch is the same whether it begins here or was gone through.
template <class T>
std::vector<T> share_of(std::span<const T> order, std::size_t begin, std::size_t world_size, std::size_t rank,
                        train::Remainder remainder) {
  std::vector<T> own(share_of(order.size() - begin, world_size, rank, remainder));
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = order[(begin + rank + i * world_size) % order.size()];
  return own;
}

}  // namespace cadre::distributed
