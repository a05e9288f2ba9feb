// The engine that cadre::init has prepared in this process, or that the controller's engine shares with this worker.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "base/file_descriptor.h"
#include "engine/engine.h"
#include "engine/local/local_engine.h"

namespace cadre::worker {

// Returns an engine on this machine with the resources given to cadre::init, on the nodes of its cluster, or in a
// worker with the resources for its own workers. Only one can exist at a time. Throws EngineError if cadre::init was
// not called in this process, if this is a worker that may not start workers, or if another engine is in use.
//
// With a cluster waits for its nodes; throws Interrupted after a signal to end meanwhile. `directory`: that of the run,
// whose lock this process holds, so that the process that continues the run if this one is killed finds them; empty:
// nobody finds them. `marks`: a file in each directory in which the run's workers can work, best first, that belongs to
// this run only; if no node lacks one of them, workers work there (engine::Engine::directory_of_workers), otherwise the
// engine carries files (engine::Engine::carries_files). None: workers have no files of the run.
std::unique_ptr<engine::Engine> make_root_engine(const std::filesystem::path& directory = {},
                                                 const std::vector<std::filesystem::path>& marks = {});

// Returns the engine on this machine, or in a worker on its node, alone. Throws EngineError as above.
std::unique_ptr<engine::local::LocalEngine> make_local_engine();

// Returns an engine for a run that has ended, which starts no worker: no nodes are requested for it. Throws EngineError
// as above, but not for another engine in use.
std::unique_ptr<engine::Engine> make_idle_engine();

// Returns an engine for workers of the same process tree beside those of the root engine, which may be in use, and of
// other further engines. Its resources are the same, and are not accounted together. Throws EngineError as above, but
// not for another engine in use.
std::unique_ptr<engine::Engine> make_further_engine();

// Returns the total resources of that engine, without a cluster. Throws EngineError if there is none.
Resources root_resources();
// Returns true if it runs workers on the nodes of a cluster.
bool has_cluster();
// Returns its nodes; with a cluster those that make_root_engine() has waited for. Throws EngineError likewise, and
// std::logic_error before make_root_engine() with a cluster: only an engine knows the run's directory.
std::vector<engine::Node> root_nodes();
// Returns true if more nodes may come than root_nodes() has returned.
bool awaits_nodes();

// In a worker that may start workers: set the connection to the fork server, which it was started with, and the
// resources for its own workers.
void start_workers_through(base::FileDescriptor fork_server);
void set_root_resources(Resources resources);

}  // namespace cadre::worker
