// A library for collective operations, whose group the processes join before their training function runs. The control
// plane does not depend on any of them: a library registers itself by name while the program is loaded.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cadre/value.h"
#include "worker/key_value_store.h"

namespace cadre::worker {

// The place of a process in its group. Ranks count from 0, sizes from 1.
struct GroupPlace {
  int world_rank = 0;
  int world_size = 1;
  int local_rank = 0;  // among the processes of its node
  int local_world_size = 1;
  int node_rank = 0;
  int num_nodes = 1;
  std::string address = {};  // of its node, by which those of other nodes reach it; empty: there are none
};

class GroupBackend {
 public:
  virtual ~GroupBackend() = default;

  // Throws InvalidArgument if no group can be formed with these options, as far as that can be known in advance.
  virtual void check(const Config& options) const = 0;
  // Joins the group; each process calls it, and it returns when all have. The store is for this group and attempt only.
  // Throws InvalidArgument for unknown options, EngineError if the group cannot be formed; the process is then in no
  // group.
  virtual void join(std::shared_ptr<KeyValueStore> store, const GroupPlace& place, const Config& options) = 0;
  // Leaves the group without waiting for the other processes. Does nothing if there is no group.
  virtual void leave() = 0;
};

// Registers a backend, which must live until the program ends. A second one of the same name is not registered.
void register_group_backend(std::string_view name, GroupBackend& backend);
// Returns nullptr if there is none.
GroupBackend* find_group_backend(std::string_view name);
std::vector<std::string> group_backend_names();

}  // namespace cadre::worker
