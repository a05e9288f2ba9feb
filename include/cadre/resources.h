/// \file
/// What a trial needs and what a machine has.
#pragma once

#include <map>
#include <string>

namespace cadre {

/// Amounts by name. They are finite and 0 or more, in steps of 0.0001; a trial needs some amount of something. Amounts
/// are accounting, not isolation: a trial on half a CPU shares a core with another one.
///
/// GPUs are an exception: a trial finds its own in CUDA_VISIBLE_DEVICES, and none where it asks for none on a machine
/// that has some.
struct Resources {
  double cpus = 1;                            ///< CPUs
  double gpus = 0;                            ///< up to 1 a share of one GPU; above 1 whole ones only
  std::map<std::string, double> custom = {};  ///< any names; the machine's own are given to cadre::init

  bool operator==(const Resources&) const = default;  ///< the same amounts of the same
};

}  // namespace cadre
