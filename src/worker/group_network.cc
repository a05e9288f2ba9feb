#include "worker/group_network.h"

#include <cstdlib>
#include <string>

#include "base/network.h"
#include "cadre/error.h"

namespace cadre::worker {

void use_network_of(const GroupPlace& place) {
  if (place.address.empty()) return;
  std::string interface;
  try {
    interface = base::interface_of(place.address);
  } catch (const EngineError&) {  // NOLINT(bugprone-empty-catch): in a sandbox; the libraries choose for themselves
  }
  if (interface.empty()) return;
  ::setenv(kGlooInterface, interface.c_str(), 0);
  ::setenv(kNcclInterface, ("=" + interface).c_str(), 0);  // NCCL takes a name without "=" for the beginning of one
}

}  // namespace cadre::worker
