// What connects the processes of a worker group directly, besides their key-value store: a library's process group.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cadre/value.h"
#include "run/key_value_store.h"

namespace cadre::run {

// Where a worker stands in its group.
struct GroupPlace {
  std::int64_t world_rank = 0;
  std::int64_t world_size = 1;
  std::int64_t local_rank = 0;
  std::int64_t local_world_size = 1;
  std::int64_t node_rank = 0;
};

class GroupBackend {
 public:
  virtual ~GroupBackend() = default;
  // Called in every worker of a group before its function, and after it. What it throws fails the worker.
  virtual void join(std::shared_ptr<KeyValueStore> store, const GroupPlace& place, const Config& options) = 0;
  virtual void leave() = 0;
};

// Makes a backend known under a name, while the program is loaded. It lives as long as the program.
bool register_group_backend(std::string_view name, GroupBackend& backend);
// nullptr where there is none.
GroupBackend* find_group_backend(std::string_view name);

}  // namespace cadre::run
