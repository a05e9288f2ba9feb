// A process's state from /proc/<process>/stat.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>

namespace cadre::engine::local {

struct ProcessStat {
  pid_t parent = 0;
  bool exiting = false;  // true: no longer runs any of its code
};

// Reads the state; `directory` is /proc/<process>. Empty if the process is gone.
std::optional<ProcessStat> read_process_stat(const std::filesystem::path& directory);

}  // namespace cadre::engine::local
