// What a trial needs and what a machine has.
#pragma once

#include <map>
#include <string>

namespace cadre {

// Amounts by name. Fractions are allowed down to 0.0001; amounts are accounting, not isolation (a trial on half a CPU
// shares a core with another one).
// GPUs are an exception: a trial finds its own in CUDA_VISIBLE_DEVICES, and none where it asks for none on a machine
// that has some. A share (0.25) is of one GPU; above 1 only whole ones.
struct Resources {
  double cpus = 1;
  double gpus = 0;
  std::map<std::string, double> custom = {};  // any names; the machine's own are given to cadre::init

  bool operator==(const Resources&) const = default;
};

}  // namespace cadre
