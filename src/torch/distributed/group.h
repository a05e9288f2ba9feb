// The process group of this process, used by the training function's calls (cadre/train_torch.h).
#pragma once

#include <torch/torch.h>
// torch.h comes first: these headers need its macros.
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "worker/group_backend.h"
#include "worker/key_value_store.h"

namespace cadre::distributed {

// The message of a group's first failed operation. Gloo is unreliable after a failure: a connection whose buffer was
// destroyed with the failed operation never reads again, so it does not notice that its peer has died.
class FirstFailure {
 public:
  void set(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (text_.empty()) text_ = text;
  }
  [[nodiscard]] std::string text() const {  // empty: none has failed
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

// This process's place in a group. A process that has not joined one is a world of one.
struct Group {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  torch::Device device = torch::kCPU;
  bool checks_calls = true;  // compares the operations of cadre/train_torch/group.h over the ranks
  c10::intrusive_ptr<c10d::ProcessGroup> process_group = {};                 // null in a world of one
  std::shared_ptr<FirstFailure> failure = std::make_shared<FirstFailure>();  // shared by copies
};

struct JoinOptions {
  std::string backend;  // "gloo", "nccl", or empty: nccl if this build has it and each rank has a GPU, else gloo
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  // Network interface of Gloo between machines. Empty: the one that worker::use_network_of() has chosen, or, if it has
  // chosen none, the one with the address of this machine's name.
  std::string interface;
  bool check_collectives = true;
};

// Returns the first GPU visible to this process, or the CPU if there is none. A Cadre worker sees only its own GPUs.
torch::Device own_device();

// Join and leave a group, see worker::GroupBackend. A process is in one group at a time; joining another one leaves the
// first.
void join_group(std::shared_ptr<worker::KeyValueStore> store, const worker::GroupPlace& place,
                const JoinOptions& options);
void leave_group();

// Returns the current group; may be called from any thread.
Group current_group();

}  // namespace cadre::distributed
