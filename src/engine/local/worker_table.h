// Memory that the controller, the fork server and its workers share: who runs, so that the controller can end process
// groups when the server is gone, why a worker could not be set up, and which signals have reached one from outside.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.h"

namespace cadre::engine::local {

class WorkerTable {
 public:
  static constexpr std::size_t max_workers = 4096;  // at a time

  // Makes the memory. Throws EngineError.
  WorkerTable();
  // Maps what another process made.
  explicit WorkerTable(base::FileDescriptor memory);
  ~WorkerTable();
  WorkerTable(const WorkerTable&) = delete;
  WorkerTable& operator=(const WorkerTable&) = delete;

  int fd() const { return memory_.get(); }

  // In the server.
  std::optional<std::size_t> take_slot();
  void set_process(std::size_t slot, pid_t process);
  std::string setup_failure(std::size_t slot) const;
  // The signal that was noted last, and is forgotten with this; 0: none.
  int take_signal(std::size_t slot);
  void free_slot(std::size_t slot);

  // In the worker, before it ends because of it. Cut to what fits.
  void set_setup_failure(std::size_t slot, const std::string& reason);
  // In the worker's signal handler.
  void set_signal(std::size_t slot, int signal) noexcept;

  // In the controller and in the watcher: the leaders of all process groups, once the server is gone.
  std::vector<pid_t> processes() const;

 private:
  struct Slot {
    std::atomic<pid_t> process;
    std::atomic<int> signal;
    char setup_failure[248];
  };
  void map();

  base::FileDescriptor memory_;
  Slot* slots_ = nullptr;
  std::vector<std::size_t> free_;  // of the server's; the rest have never been used
  std::size_t used_ = 0;
};

}  // namespace cadre::engine::local
