// A process that outlives the fork server by a moment. Workers go with the server by the kernel's signal, but programs
// that a worker has started go with its process group, which somebody has to end. The server and the controller do
// that; where both are killed in one instant, this process does.
#pragma once

#include <string>

#include "engine/local/worker_table.h"

namespace cadre::engine::local {

// In the server, before it has blocked or taken any signal: forks a child that ends the process groups of all workers
// in the table when this process is gone, and then itself. It is in a session of its own, keeps no descriptor, and
// blocks all signals. Returns why it could not be started; empty: it was.
std::string start_group_watcher(const WorkerTable& table);

}  // namespace cadre::engine::local
