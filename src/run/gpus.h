// The GPUs of this machine, as CUDA numbers them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace cadre::run {

// How many there are: as CUDA_VISIBLE_DEVICES says where that is set, otherwise those that the NVIDIA driver shows.
// CUDA itself is not asked: that would start threads, and the fork server could not follow.
int count_gpus();

// What CUDA_VISIBLE_DEVICES must be for a process that has these of our GPUs, numbered from 0.
std::string visible_devices(const std::vector<int>& gpus);

// The kind of the machine's GPUs: of their model the first word with a digit, "H100" of "NVIDIA H100 80GB HBM3", or all
// of it. Empty where there are none, or of several kinds.
std::string accelerator_type(const std::filesystem::path& driver = "/proc/driver/nvidia");

}  // namespace cadre::run
