// The store of a process group over Cadre's own channel: no process listens on a port.
#pragma once

#include <torch/torch.h>
// torch.h comes first: these headers need its macros.
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <memory>

#include "worker/key_value_store.h"

namespace cadre::distributed {

// Makes a store that passes all keys to `values` unchanged. `timeout` is for get() and wait() calls without their own;
// one day if it is torch's "no timeout".
c10::intrusive_ptr<c10d::Store> make_store(std::shared_ptr<worker::KeyValueStore> values,
                                           std::chrono::milliseconds timeout);

}  // namespace cadre::distributed
