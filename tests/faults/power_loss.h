// Makes of a folder what a disk may hold after its power failed: everything that was synced, and any part of all else,
// in any order.
//
// A file that was not synced since it was written has any of its pages in their new or in their old state, and any
// length between; a name that was made, removed or given to another file since its directory was synced is as before or
// as after, and each of them for itself. A rename over a file leaves the one or the other, as POSIX wants it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "survival/random.h"

namespace cadre::survival {

class Disk {
 public:
  // Everything below the folder counts, which must exist. What was synced is noted in `memory`, a folder elsewhere.
  Disk(std::filesystem::path folder, std::filesystem::path memory);

  // Whoever runs with this notes what they sync.
  std::vector<std::string> environment() const;
  // All that is there now is synced.
  void settle();

  enum class Loss { any, all };  // of what was not synced
  // Leaves in the folder what the disk then holds; all of that is synced. Nobody may use the folder meanwhile.
  void lose_power(Random& random, Loss loss);

 private:
  std::filesystem::path folder_;
  std::filesystem::path memory_;
};

}  // namespace cadre::survival
