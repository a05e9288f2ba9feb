// The process that forks workers, reaps them and tells the controller how they ended. It is forked before the program
// has a thread and stays single-threaded, so that its children can use every library.
//
// A worker that may start workers itself has a connection of its own to it; those go with that worker.
//
// It ends when the controller does, or asks for it, and leaves no descendant behind: it is the reaper of all orphans
// below it. Interrupts from the terminal are the controller's business; it sits in a process group of its own.
#pragma once

#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "engine/local/worker_parts.h"
#include "engine/local/worker_table.h"

namespace cadre::engine::local {

// Runs in a worker after its setup. Does not return.
using WorkerBody = void (*)(WorkerParts parts);

struct ForkServerParts {
  base::FileDescriptor control;  // SOCK_SEQPACKET, to the controller
  WorkerTable* table = nullptr;
  pid_t controller = 0;  // its parent
  WorkerBody body = nullptr;
  void (*preload)() = nullptr;  // may be none
};

[[noreturn]] void run_fork_server(ForkServerParts parts);

// Threads of this process beside the calling one that a fork would break, by name: all but those known to be harmless.
std::vector<std::string> other_threads();

}  // namespace cadre::engine::local
