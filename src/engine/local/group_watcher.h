// A process that outlives the fork server briefly. The kernel's signal ends workers with the server, but programs
// that a worker has started must be killed through its process group. The server and the controller do that; if both
// are killed in the same instant, this process does.
#pragma once

#include <string>

#include "engine/local/worker_table.h"

namespace cadre::engine::local {

// Forks a child that waits for the end of this process, then kills the process groups of all workers in the table and
// exits. The child is in its own session, keeps no descriptor and blocks all signals. Called in the server before it
// blocks all signals. Returns why the child could not be started; empty on success.
std::string start_group_watcher(const WorkerTable& table);

}  // namespace cadre::engine::local
