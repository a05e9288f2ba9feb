// What a forked worker does before anything of the user's runs.
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
  std::vector<int> foreign = {};  // descriptors of the server's
  WorkerTable* table = nullptr;
  std::size_t slot = 0;  // its own in the table
};

// What a worker may allocate beyond its limit once its function has failed, to say why.
inline constexpr std::uint64_t memory_reserve_bytes = std::uint64_t{16} << 20;

// Its own process group, killed with its parent, output appended to files in the directory, thread counts, first in
// line when memory runs out, the server's descriptors closed, no signal blocked, signals that ask it to end left to the
// server (outside_signals.h), back traces of crashes. The limit of its memory is the soft RLIMIT_DATA, the hard one has
// the reserve on top. Returns why it failed; empty: it did not. The server has already given it a closed stdin and
// default signal handlers (see prepare_for_workers).
std::string set_up_worker(const WorkerSetup& setup);

// In the server, before the user's preload: numerical libraries then start no threads, which a forked worker would not
// have. Every worker sets a count of its own.
void prepare_for_preload();

// In the server, once: what every worker inherits. A SIGINT, SIGTERM or SIGHUP that the program ignores, as under
// nohup, stays ignored.
void prepare_for_workers();

}  // namespace cadre::engine::local
