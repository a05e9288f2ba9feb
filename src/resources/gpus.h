// The GPUs of this machine, as CUDA numbers them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "resources/cluster.h"
#include "resources/node.h"

namespace cadre::resources {

// Returns the number of GPUs: the devices in CUDA_VISIBLE_DEVICES if that is set, otherwise those that the NVIDIA
// driver shows. Does not call CUDA, which would start threads, so that the fork server could not fork.
int count_gpus();

// Returns the value of CUDA_VISIBLE_DEVICES for a process that has these of our GPUs, numbered from 0. On a machine
// with several kinds the names are UUIDs: CUDA would number the fastest first.
std::string visible_devices(const std::vector<int>& gpus);
// Returns it for a process on one of these nodes.
std::string visible_devices(const std::vector<int>& gpus, const std::vector<Node>& nodes, NodeId node);
// Returns it for a worker in a place on one of these nodes; empty: the variable stays as it is, because `machine`, the
// resources of that node, has no GPUs.
std::optional<std::string> visible_devices(const Resources& machine, const Place& place,
                                           const std::vector<Node>& nodes);
// Returns the names of our first GPUs there, as Node::gpu_names has them.
std::vector<std::string> gpu_names(double gpus);

// Names the folders in which Linux shows GPUs.
struct GpuFiles {
  std::filesystem::path driver = "/proc/driver/nvidia";
  std::filesystem::path devices = "/dev";
};

// Returns the kinds of count_gpus() GPUs in the form of Resources::accelerator_type: one if all are of that kind. A
// kind is the first word of the model with a digit, "H100" of "NVIDIA H100 80GB HBM3", or the whole model if there is
// none. Empty if there are no GPUs, or if they are of several kinds and CUDA_VISIBLE_DEVICES has numbers that only CUDA
// understands: those of CUDA_DEVICE_ORDER=PCI_BUS_ID are understood.
std::string accelerator_types(const GpuFiles& files = {});

// Returns the UUIDs of the GPUs, in the order of accelerator_types(), if they are of several kinds; empty otherwise.
std::vector<std::string> uuids_of_several_kinds(const GpuFiles& files = {});

}  // namespace cadre::resources
