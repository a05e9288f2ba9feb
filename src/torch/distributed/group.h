// The group that this process is in: what the training function's calls (cadre/train_torch.h) work with.
#pragma once

#include <torch/torch.h>
// torch.h comes first: these headers want its macros.
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "run/group_backend.h"
#include "run/key_value_store.h"

namespace cadre::distributed {

// Keeps the message of a group's first operation that failed. Nothing that Gloo does after one is reliable: a
// connection whose buffer went away with the failed operation never reads on, and so does not hear that its peer has
// died.
class FirstFailure {
 public:
  void set(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (text_.empty()) text_ = text;
  }
  [[nodiscard]] std::string text() const {  // empty as long as none failed
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

// A process that never joined is a world of one.
struct Group {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  torch::Device device = torch::kCPU;
  c10::intrusive_ptr<c10d::ProcessGroup> process_group = {};                 // null in a world of one
  std::shared_ptr<FirstFailure> failure = std::make_shared<FirstFailure>();  // shared by the copies
};

struct JoinOptions {
  std::string backend;  // "gloo", "nccl", or empty: nccl where there are a GPU and NCCL
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  std::string interface;  // that Gloo uses between machines; empty: what this machine's name stands for
};

// The first GPU that this process sees, or the CPU where it sees none. A worker of Cadre's sees its own only.
torch::Device own_device();

// See run::GroupBackend. A process is in one group at a time; joining another one leaves the first.
void join_group(std::shared_ptr<run::KeyValueStore> store, const run::GroupPlace& place, const JoinOptions& options);
void leave_group();

// Any thread.
Group current_group();

}  // namespace cadre::distributed
