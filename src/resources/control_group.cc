#include "resources/control_group.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>

namespace cadre::resources {
namespace {

// Returns the number in a file; empty if the file is not there, or says "max".
std::optional<std::uint64_t> number_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

std::optional<double> cpus_of(const std::filesystem::path& group) {
  std::ifstream file(group / "cpu.max");  // "150000 100000": microseconds of CPU time in each period
  double quota = 0, period = 0;
  return file >> quota >> period && period > 0 ? std::optional(quota / period) : std::nullopt;
}

// Returns the memory of files that was not used lately: the kernel drops it before it refuses memory.
std::uint64_t inactive_file_bytes(const std::filesystem::path& group) {
  std::ifstream file(group / "memory.stat");
  std::string name;
  for (std::uint64_t bytes = 0; file >> name >> bytes;) {
    if (name == "inactive_file") return bytes;
  }
  return 0;
}

std::optional<GroupMemory> memory_of(const std::filesystem::path& group) {
  const std::optional<std::uint64_t> limit = number_in(group / "memory.max");
  const std::optional<std::uint64_t> used = number_in(group / "memory.current");
  if (!limit || !used) return std::nullopt;
  return GroupMemory{.limit_bytes = *limit, .used_bytes = *used - std::min(*used, inactive_file_bytes(group))};
}

// Returns the path of the process's group below the root, "/" for the root itself; empty without groups of version 2.
std::filesystem::path group_in(const std::filesystem::path& groups) {
  constexpr std::string_view kVersion2 = "0::";
  std::ifstream file(groups);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kVersion2)) return line.substr(kVersion2.size());
  }
  return {};
}

}  // namespace

GroupLimits group_limits(const std::filesystem::path& groups, const std::filesystem::path& root) {
  GroupLimits limits;
  const std::filesystem::path own = group_in(groups);
  if (own.empty()) return limits;
  std::filesystem::path group = root;
  const auto add = [&] {
    if (const std::optional<double> cpus = cpus_of(group)) limits.cpus = std::min(*cpus, limits.cpus.value_or(*cpus));
    const std::optional<GroupMemory> memory = memory_of(group);
    if (memory && (!limits.memory || memory->limit_bytes < limits.memory->limit_bytes)) limits.memory = memory;
  };
  add();
  for (const std::filesystem::path& name : own.relative_path()) {
    if (name == "..") break;  // the process is outside of the groups that are seen here
    group /= name;
    add();
  }
  return limits;
}

}  // namespace cadre::resources
