// A library for collective operations that the processes of a group join before their training function runs. The
// control plane knows none of them: a library registers its own by name while the program is loaded.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cadre/value.h"
#include "run/key_value_store.h"

namespace cadre::run {

// Where a process stands among the others. Ranks and sizes count from 0 and 1.
struct GroupPlace {
  int world_rank = 0;
  int world_size = 1;
  int local_rank = 0;  // among the processes of its node
  int local_world_size = 1;
  int node_rank = 0;
  int num_nodes = 1;
};

class GroupBackend {
 public:
  virtual ~GroupBackend() = default;

  // Throws InvalidArgument for options with which no group can be formed, as far as that can be known before.
  virtual void check(const Config& options) const = 0;
  // Called by each process of the group, returns when all of them have. The store is the group's alone: another group,
  // or the same one in another attempt, has another. Throws InvalidArgument for options that it does not know,
  // EngineError where the group cannot be formed; the process is then in none.
  virtual void join(std::shared_ptr<KeyValueStore> store, const GroupPlace& place, const Config& options) = 0;
  // Waits for nobody. Nothing happens where there is no group.
  virtual void leave() = 0;
};

// The backend must stay. A second one of the same name is kept out.
void register_group_backend(std::string_view name, GroupBackend& backend);
// nullptr where there is none.
GroupBackend* find_group_backend(std::string_view name);
std::vector<std::string> group_backend_names();

}  // namespace cadre::run
