// How often the kernel has ended a process because memory ran out: what tells its SIGKILL from somebody's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace cadre::engine::local {

// The file that counts what concerns this process most closely: memory.events of its cgroup, where version 2 has the
// memory controller (the cgroup and all below it), else /proc/vmstat (the whole machine). `root` is for tests.
std::filesystem::path oom_counter_file(const std::filesystem::path& root = "/");

// What its line "oom_kill <count>" says. Empty when it cannot be read or has none (before Linux 4.13).
std::optional<std::uint64_t> read_oom_kills(const std::filesystem::path& file);

}  // namespace cadre::engine::local
