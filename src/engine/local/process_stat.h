// What /proc/<process>/stat says about a process.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>

namespace cadre::engine::local {

struct ProcessStat {
  pid_t parent = 0;
  bool exiting = false;  // it no longer runs any of its code
};

// `directory` is /proc/<process>. Empty when the process is gone.
std::optional<ProcessStat> read_process_stat(const std::filesystem::path& directory);

}  // namespace cadre::engine::local
