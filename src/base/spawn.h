// Starts programs.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cadre::base {

struct SpawnOptions {
  std::vector<std::string> command = {};                     // not empty; the program is looked for in PATH
  std::optional<std::vector<std::string>> environment = {};  // "NAME=value"; empty: this process's
  std::string directory = {};                                // empty: this process's
  // Descriptors of this process, and their numbers in the program. The others that it gets are those without
  // FD_CLOEXEC.
  std::vector<std::pair<int, int>> descriptors = {};
  bool in_own_group = false;  // true: it leads a process group of its own
};

struct Spawned {
  ::pid_t process = 0;
  int error = 0;  // an error number; 0: the process was started
};

// Starts a program with the default actions of all signals, none of which is blocked.
Spawned spawn(const SpawnOptions& options);

}  // namespace cadre::base
