#include "worker/group_backend.h"

#include "base/registry.h"

namespace cadre::worker {
namespace {

// Inside a function, because it is used while objects of other files are initialised.
base::Registry<GroupBackend*>& backends() {
  static base::Registry<GroupBackend*> instance;
  return instance;
}

}  // namespace

void register_group_backend(std::string_view name, GroupBackend& backend) { backends().add(name, &backend); }

GroupBackend* find_group_backend(std::string_view name) {
  GroupBackend* const* const found = backends().find(name);
  return found == nullptr ? nullptr : *found;
}

std::vector<std::string> group_backend_names() { return backends().names(); }

}  // namespace cadre::worker
