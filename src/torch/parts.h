// Tensors that are parts of larger ones, whose other parts are on other ranks (train::fully_shard).
#pragma once

#include <torch/torch.h>

#include <vector>

namespace cadre::pt {

// An interface of whoever has made parts.
class OwnerOfParts {
 public:
  virtual ~OwnerOfParts() = default;
  // Sums a value over all ranks. Collective.
  virtual void sum(torch::Tensor& value) const = 0;
};

// Marks parts while it lives; they live at least as long.
class MarkedParts {
 public:
  MarkedParts(const std::vector<torch::Tensor>& parts, const OwnerOfParts& owner);
  ~MarkedParts();
  MarkedParts(const MarkedParts&) = delete;
  MarkedParts& operator=(const MarkedParts&) = delete;

 private:
  std::vector<torch::TensorImpl*> parts_;
};

// Returns the owners of those tensors that are parts.
std::vector<const OwnerOfParts*> owners_of_parts(const std::vector<torch::Tensor>& tensors);

}  // namespace cadre::pt
