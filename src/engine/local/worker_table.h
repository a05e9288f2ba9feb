// Memory shared by the controller, the fork server and its workers: the running workers, so that the controller can
// kill process groups when the server is gone, the reasons of failed setups, and the signals that workers got from
// outside.
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
  // Maps the memory that another process made. Throws EngineError.
  explicit WorkerTable(base::FileDescriptor memory);
  ~WorkerTable();
  WorkerTable(const WorkerTable&) = delete;
  WorkerTable& operator=(const WorkerTable&) = delete;

  int fd() const { return memory_.get(); }

  // Used in the server.
  std::optional<std::size_t> take_slot();
  void set_process(std::size_t slot, pid_t process);
  std::string setup_failure(std::size_t slot) const;
  // Returns and clears the signal recorded last; 0: none.
  int take_signal(std::size_t slot);
  void free_slot(std::size_t slot);

  // Records the reason, cut to the size of its field. Called in the worker before it ends because of it.
  void set_setup_failure(std::size_t slot, const std::string& reason);
  // Records a signal. Called in the worker's signal handler.
  void set_signal(std::size_t slot, int signal) noexcept;

  // Returns the leaders of all process groups. Called in the controller and the watcher after the server is gone.
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
  std::vector<std::size_t> free_;  // freed slots, in the server; slots from `used_` on were never used
  std::size_t used_ = 0;
};

}  // namespace cadre::engine::local
