// The process that forks workers, reaps them and reports their ends to the controller. It is forked before the
// program has a thread, or executed anew, and stays single-threaded, so that its children can use every library.
//
// A worker that may start workers itself has its own connection to the server; its workers end with it.
//
// The server ends when the controller ends or requests it, and leaves no descendants: all orphans below it become its
// children. The controller handles interrupts from the terminal; the server is in a process group of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "engine/local/worker_parts.h"
#include "engine/local/worker_table.h"

namespace cadre::engine::local {

// Body of a worker, called after its setup. Does not return.
using WorkerBody = void (*)(WorkerParts parts);

// A descriptor that the server watches, and what it calls between two forks when that can be read.
struct ServerInput {
  int fd = -1;  // below 0: none
  std::function<void()> handle = {};
};

struct ForkServerParts {
  base::FileDescriptor control;  // SOCK_SEQPACKET, to the controller
  WorkerTable* table = nullptr;
  pid_t controller = 0;  // its parent
  WorkerBody body = nullptr;
  std::function<void()> preload = {};  // may be empty
  ServerInput input = {};
};

[[noreturn]] void run_fork_server(ForkServerParts parts);

// Returns the names of this process's threads, except the calling one and those known to be safe, that a fork would
// break.
std::vector<std::string> other_threads();

}  // namespace cadre::engine::local
