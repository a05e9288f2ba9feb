// Setup of a forked worker before user code runs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/local/worker_table.h"

namespace cadre::engine::local {

struct WorkerSetup {
  std::string directory;  // for its output
  int threads = 1;        // for numerical libraries
  std::optional<std::uint64_t> memory_bytes = {};
  pid_t server = 0;               // its parent
  std::vector<int> foreign = {};  // the server's descriptors, closed in the worker
  WorkerTable* table = nullptr;
  std::size_t slot = 0;  // its own in the table
};

// Memory that a worker may allocate beyond its limit after its function has failed, to report the reason.
inline constexpr std::uint64_t memory_reserve_bytes = std::uint64_t{16} << 20;

// Sets up a worker: its own process group, killed with its parent, output appended to files in the directory, thread
// counts, the first to be killed when memory runs out, the server's descriptors closed, no signal blocked,
// termination signals handled by the server (outside_signals.h), back traces of crashes. The memory limit is the soft
// RLIMIT_DATA; the hard limit adds the reserve. Returns why it failed; empty on success. The server has already set a
// closed stdin and default signal handlers (see prepare_for_workers).
std::string set_up_worker(const WorkerSetup& setup);

// Stops numerical libraries from starting threads, which a forked worker would not have. Called in the server before
// the user's preload; every worker sets its own thread count.
void prepare_for_preload();

// Sets the state that every worker inherits. Called once, in the server. A SIGINT, SIGTERM or SIGHUP that the program
// ignores, as under nohup, stays ignored.
void prepare_for_workers();

}  // namespace cadre::engine::local
