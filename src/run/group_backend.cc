#include "run/group_backend.h"

#include <map>

namespace cadre::run {
namespace {

// Inside a function: it is used while other files' objects are initialised.
std::map<std::string, GroupBackend*, std::less<>>& backends() {
  static std::map<std::string, GroupBackend*, std::less<>> instance;
  return instance;
}

}  // namespace

bool register_group_backend(std::string_view name, GroupBackend& backend) {
  return backends().emplace(name, &backend).second;
}

GroupBackend* find_group_backend(std::string_view name) {
  const auto found = backends().find(name);
  return found == backends().end() ? nullptr : found->second;
}

}  // namespace cadre::run
