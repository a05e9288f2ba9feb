#include "base/boot.h"

#include <fstream>

namespace cadre::base {

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace cadre::base
