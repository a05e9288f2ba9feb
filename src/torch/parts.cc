#include "torch/parts.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

namespace cadre::pt {
namespace {

struct AllParts {
  std::mutex mutex;
  std::unordered_map<const torch::TensorImpl*, const OwnerOfParts*> owners;
};

AllParts& all_parts() {
  static AllParts* const all = new AllParts;  // models may be destroyed by destructors of statics
  return *all;
}

}  // namespace

MarkedParts::MarkedParts(const std::vector<torch::Tensor>& parts, const OwnerOfParts& owner) {
  const std::lock_guard lock(all_parts().mutex);
  for (const torch::Tensor& part : parts) {
    parts_.push_back(part.unsafeGetTensorImpl());
    all_parts().owners[parts_.back()] = &owner;
  }
}

MarkedParts::~MarkedParts() {
  const std::lock_guard lock(all_parts().mutex);
  for (const torch::TensorImpl* const part : parts_) all_parts().owners.erase(part);
}

std::vector<const OwnerOfParts*> owners_of_parts(const std::vector<torch::Tensor>& tensors) {
  const std::lock_guard lock(all_parts().mutex);
  std::vector<const OwnerOfParts*> owners;
  for (const torch::Tensor& tensor : tensors) {
    const auto found = all_parts().owners.find(tensor.unsafeGetTensorImpl());
    if (found == all_parts().owners.end()) continue;
    if (std::ranges::find(owners, found->second) == owners.end()) owners.push_back(found->second);
  }
  return owners;
}

}  // namespace cadre::pt
