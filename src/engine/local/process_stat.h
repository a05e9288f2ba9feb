// The state of a process or a thread from /proc.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>

namespace cadre::engine::local {

struct ProcessStat {
  pid_t parent = 0;
  bool exiting = false;  // true: no longer runs any of its code
  bool waits = false;    // true: sleeps until an event or a signal comes
};

// Reads the state; `directory` is /proc/<process>, or /proc/<process>/task/<thread>. Empty if it is gone.
std::optional<ProcessStat> read_process_stat(const std::filesystem::path& directory);

}  // namespace cadre::engine::local
