#include "torch/distributed/flat_layout.h"

#include <algorithm>

namespace cadre::distributed {
namespace {

constexpr std::int64_t kAlignment = 16;

std::int64_t round_up(std::int64_t number, std::int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

}  // namespace

FlatLayout::FlatLayout(std::span<const std::int64_t> sizes, int ranks)
    : sizes_(sizes.begin(), sizes.end()), ranks_(ranks) {
  std::int64_t end = 0;
  for (const std::int64_t size : sizes) {
    begins_.push_back(end);
    end = round_up(end + size, kAlignment);
  }
  part_size_ = round_up((end + ranks - 1) / ranks, kAlignment);
}

ElementRange FlatLayout::part_of(std::size_t tensor, int rank) const {
  const std::int64_t begin = part_size_ * rank - begins_[tensor];
  return {std::clamp(begin, std::int64_t{0}, sizes_[tensor]),
          std::clamp(begin + part_size_, std::int64_t{0}, sizes_[tensor])};
}

}  // namespace cadre::distributed
