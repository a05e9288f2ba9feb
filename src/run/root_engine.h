// The engine that cadre::init has prepared in this process.
#pragma once

#include <memory>

#include "engine/engine.h"

namespace cadre::run {

// An engine on this machine with the resources that cadre::init was given. One at a time. Throws EngineError when
// cadre::init was not called in this process, or another engine is in use.
std::unique_ptr<engine::Engine> make_root_engine();

// What that engine would have in all. Throws EngineError when cadre::init was not called in this process.
Resources root_resources();

}  // namespace cadre::run
