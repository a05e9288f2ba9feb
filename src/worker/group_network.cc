#include "worker/group_network.h"

#include <cstdlib>
#include <string>

#include "base/network.h"

namespace cadre::worker {

void use_network_of(const GroupPlace& place) {
  if (place.address.empty()) return;
  const std::string interface = base::interface_of(place.address);
  if (interface.empty()) return;
  ::setenv(kGlooInterface, interface.c_str(), 0);
  ::setenv(kNcclInterface, ("=" + interface).c_str(), 0);  // NCCL takes a name without "=" for the beginning of one
}

}  // namespace cadre::worker
