// Machines that run workers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cadre/resources.h"

namespace cadre::resources {

// Numbers are assigned by an engine in the order in which nodes join, and never reused. An engine on one machine has
// one node, 0.
using NodeId = std::uint32_t;
struct Node {
  NodeId id = 0;
  std::string name = {};  // for people: its host name; empty: this machine
  // By which other nodes reach it: an IP address, or a host name if none is known. Empty: this machine.
  std::string address = {};
  Resources resources = {};  // in total, including those in use
  // The GPUs as CUDA_VISIBLE_DEVICES names them there; empty: as it does here.
  std::vector<std::string> gpu_names = {};
  double price = 0;  // of an hour, as the cluster's description says; 0: nothing
  bool operator==(const Node&) const = default;
};

}  // namespace cadre::resources
