// Count of the kernel's out-of-memory kills, which distinguishes them from other SIGKILLs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace cadre::engine::local {

// Returns the most specific file with a count for this process: memory.events of its cgroup if version 2 has the
// memory controller (counts the cgroup and all below it), otherwise /proc/vmstat (the whole machine). `root` is for
// tests.
std::filesystem::path oom_counter_file(const std::filesystem::path& root = "/");

// Returns the count of the line "oom_kill <count>"; empty if the file cannot be read or has no such line (before
// Linux 4.13).
std::optional<std::uint64_t> read_oom_kills(const std::filesystem::path& file);

}  // namespace cadre::engine::local
