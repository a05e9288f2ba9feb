// The network of a group whose ranks are on several nodes.
#pragma once

#include "worker/group_backend.h"

namespace cadre::worker {

// Environment variables that name the interface which a library uses.
inline constexpr const char* kGlooInterface = "GLOO_SOCKET_IFNAME";
inline constexpr const char* kNcclInterface = "NCCL_SOCKET_IFNAME";

// Sets these variables to the interface by which other nodes reach this one, unless they are set. The libraries' own
// choice may be another one: the address of a machine's name is a loopback address on Debian, and the first interface
// may lead elsewhere. Does nothing for a group on one node, or if no interface has the node's address. For one thread.
void use_network_of(const GroupPlace& place);

}  // namespace cadre::worker
