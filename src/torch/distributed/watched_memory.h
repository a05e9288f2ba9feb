// Tensors whose owner is told before an operation of libtorch uses their memory, which may be there only then.
//
// Such a tensor has a dispatch key that comes before all others, autograd's too, and so do its views, and what autograd
// keeps of both for the backward pass.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <memory>
#include <span>

namespace cadre::distributed {

// The memory of some tensors, all in one storage.
class WatchedMemory {
 public:
  // An interface of whoever provides memory.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Is called before an operation with all that it uses of this owner's; it may throw.
    virtual void before_use(std::span<WatchedMemory* const> used) = 0;
  };

  // `flat` is a vector, and has its memory now.
  WatchedMemory(Owner& owner, torch::Tensor flat);
  ~WatchedMemory();
  WatchedMemory(const WatchedMemory&) = delete;
  WatchedMemory& operator=(const WatchedMemory&) = delete;

  Owner& owner() const { return owner_; }
  const torch::Tensor& flat() const { return flat_; }  // without the key
  bool is_there() const { return is_there_; }
  void allocate();
  void free();

  // Makes a tensor one of these elements from `begin` on; its own memory is given up.
  void place(torch::Tensor& tensor, std::int64_t begin) const;

 private:
  Owner& owner_;
  torch::Tensor flat_;
  std::size_t bytes_;
  bool is_there_ = true;
};

}  // namespace cadre::distributed
