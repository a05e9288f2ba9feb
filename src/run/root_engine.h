// The engine that cadre::init has prepared in this process, or that the one of its controller shares with this worker.
#pragma once

#include <memory>

#include "base/file_descriptor.h"
#include "engine/engine.h"

namespace cadre::run {

// An engine on this machine with the resources that cadre::init was given, or in a worker those that are there for its
// own workers. One at a time. Throws EngineError when cadre::init was not called in this process, when it is a worker
// that may not start workers, or when another engine is in use.
std::unique_ptr<engine::Engine> make_root_engine();

// What that engine would have in all. Throws EngineError where there is none.
Resources root_resources();

// In a worker that may start workers: what it was born with, and what there is for them.
void start_workers_through(base::FileDescriptor fork_server);
void set_root_resources(Resources resources);

}  // namespace cadre::run
