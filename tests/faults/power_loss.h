// Turns a folder into what a disk may hold after a loss of power: everything that was synced, and any part of the rest,
// in any order.
//
// A file that was not synced since it was written has any of its pages in their new or old state, and any length in
// between. A name that was created, removed or given to another file since its directory was synced is as before or as
// after, independently of other names. A rename over a file leaves either file, as POSIX requires.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "survival/random.h"

namespace cadre::survival {

class Disk {
 public:
  // Covers everything below the folder, which must exist. Records what is synced in `memory`, a folder elsewhere.
  Disk(std::filesystem::path folder, std::filesystem::path memory);

  // Returns the environment in which a process records what it syncs.
  std::vector<std::string> environment() const;
  // Records the present state of the folder as synced.
  void settle();

  enum class Loss { any, all };  // any part, or all, of the unsynced data
  // Leaves in the folder what the disk holds afterwards, all of it synced. No process may use the folder meanwhile.
  void lose_power(Random& random, Loss loss);

 private:
  std::filesystem::path folder_;
  std::filesystem::path memory_;
};

}  // namespace cadre::survival
