// The GPUs of this machine, as CUDA numbers them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace cadre::resources {

// Returns the number of GPUs: the devices in CUDA_VISIBLE_DEVICES if that is set, otherwise those that the NVIDIA
// driver shows. Does not call CUDA, which would start threads, so that the fork server could not fork.
int count_gpus();

// Returns the value of CUDA_VISIBLE_DEVICES for a process that has these of our GPUs, numbered from 0.
std::string visible_devices(const std::vector<int>& gpus);

// Returns the kind of the machine's GPUs: the first word of their model with a digit, "H100" of "NVIDIA H100 80GB
// HBM3", or the whole model if there is none. Empty if there are no GPUs or several kinds.
std::string accelerator_type(const std::filesystem::path& driver = "/proc/driver/nvidia");

}  // namespace cadre::resources
