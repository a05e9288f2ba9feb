// The store of a process group on Cadre's own channel: nothing listens anywhere.
#pragma once

#include <torch/torch.h>
// torch.h comes first: these headers want its macros.
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <memory>

#include "run/key_value_store.h"

namespace cadre::distributed {

// All keys go to `values` as they are. `timeout` is for get() and wait() without one of their own; where torch says "no
// timeout", that is a day.
c10::intrusive_ptr<c10d::Store> make_store(std::shared_ptr<run::KeyValueStore> values,
                                           std::chrono::milliseconds timeout);

}  // namespace cadre::distributed
