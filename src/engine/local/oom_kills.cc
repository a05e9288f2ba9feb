#include "engine/local/oom_kills.h"

#include <fstream>
#include <string>

namespace cadre::engine::local {
namespace fs = std::filesystem;
namespace {

// Returns the cgroup of this process relative to the root of the version 2 hierarchy; empty if it has none.
std::optional<fs::path> cgroup(const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::/")) return line.substr(4);
  }
  return std::nullopt;
}

}  // namespace

fs::path oom_counter_file(const fs::path& root) {
  if (const std::optional<fs::path> group = cgroup(root)) {
    fs::path events = root / "sys/fs/cgroup" / *group / "memory.events";
    if (read_oom_kills(events)) return events;
  }
  return root / "proc/vmstat";
}

std::optional<std::uint64_t> read_oom_kills(const fs::path& file) {
  std::ifstream lines(file);
  std::string name;
  for (std::uint64_t count = 0; lines >> name >> count;) {
    if (name == "oom_kill") return count;
  }
  return std::nullopt;
}

}  // namespace cadre::engine::local
