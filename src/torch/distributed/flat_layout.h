// The elements of several tensors in one row, and which of them a rank has. Does not depend on torch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cadre::distributed {

struct ElementRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const ElementRange&) const = default;
};

// Tensors lie one behind the other, each at a multiple of 16 elements, and the whole is divided into equal parts, so
// that the last one may have nothing at its end.
class FlatLayout {
 public:
  // Takes the number of elements of each tensor.
  FlatLayout(std::span<const std::int64_t> sizes, int ranks);

  std::int64_t size() const { return part_size_ * ranks_; }  // with what lies between tensors, and behind them
  std::int64_t part_size() const { return part_size_; }
  std::int64_t begin_of(std::size_t tensor) const { return begins_[tensor]; }
  // Returns the elements of a tensor that a rank has, counted from the tensor's first one.
  ElementRange part_of(std::size_t tensor, int rank) const;

 private:
  std::vector<std::int64_t> begins_;
  std::vector<std::int64_t> sizes_;
  int ranks_;
  std::int64_t part_size_;
};

}  // namespace cadre::distributed
