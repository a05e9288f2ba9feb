// Runs a test's function in ranks, each a process of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "cadre/train_torch.h"
#include "shared_store.h"
#include "worker/group_backend.h"

namespace cadre::test_support {

inline worker::GroupBackend& torch_backend() {
  train::detail::use_torch_backend();
  worker::GroupBackend* const backend = worker::find_group_backend("torch");
  if (backend == nullptr) throw NotFound("no group backend \"torch\"");
  return *backend;
}

// Runs in the process of a rank; the exit status is 0 if all expectations hold.
[[noreturn]] inline void be_rank(int rank, int world_size, const std::shared_ptr<worker::KeyValueStore>& store,
                                 const Config& group_options, const std::function<void(int)>& body) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    torch::set_num_threads(1);
    torch_backend().join(
        store, {.world_rank = rank, .world_size = world_size, .local_rank = rank, .local_world_size = world_size},
        group_options);
    body(rank);
    torch_backend().leave();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "rank " << rank << ": " << error.what();
  }
  std::fflush(nullptr);
  ::_exit(testing::Test::HasFailure() ? 1 : 0);
}

// Runs the body in this many processes, which have joined a group, and waits until all have ended. Returns their wait
// statuses, by rank.
inline std::vector<int> statuses_of_ranks(
    int world_size, const std::function<void(int rank)>& body, const Config& group_options = {},
    const std::function<void(int rank)>& before_joining = [](int) {}) {
  const auto store = std::make_shared<SharedStore>();
  std::fflush(nullptr);
  std::vector<pid_t> processes;
  for (int rank = 0; rank < world_size; ++rank) {
    const pid_t process = ::fork();
    if (process == 0) {
      before_joining(rank);
      be_rank(rank, world_size, store, group_options, body);
    }
    processes.push_back(process);
  }
  std::vector<int> statuses;
  for (const pid_t process : processes) {
    int status = -1;
    ::waitpid(process, &status, 0);
    statuses.push_back(status);
  }
  return statuses;
}

// Does the same and expects all ranks to succeed.
inline void run_ranks(int world_size, const std::function<void(int rank)>& body, const Config& group_options = {}) {
  EXPECT_EQ(statuses_of_ranks(world_size, body, group_options),
            std::vector<int>(static_cast<std::size_t>(world_size), 0));
}

}  // namespace cadre::test_support
