#include "resources/memory_usage.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "resources/control_group.h"

namespace cadre::resources {
namespace {
namespace fs = std::filesystem;

fs::path directory_of(pid_t process) { return fs::path("/proc") / std::to_string(process); }

std::uint64_t unshared_resident_bytes(pid_t process) {
  static const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::ifstream file(directory_of(process) / "statm");
  std::uint64_t size = 0, resident = 0, shared = 0;  // in pages; shared: with a file or explicitly
  if (!(file >> size >> resident >> shared)) return 0;
  return (resident - std::min(resident, shared)) * page_bytes;
}

// Adds a process's children. /proc lists them by the thread that started them.
void add_children(pid_t process, std::vector<pid_t>& found) {
  std::error_code error;
  fs::directory_iterator thread(directory_of(process) / "task", error);
  for (; !error && thread != fs::directory_iterator(); thread.increment(error)) {
    std::ifstream file(thread->path() / "children");
    for (pid_t child = 0; file >> child;) found.push_back(child);
  }
}

struct MachineMemory {
  std::uint64_t total_kib = 0;
  std::uint64_t available_kib = 0;
};

std::optional<MachineMemory> machine_memory() {
  std::ifstream file("/proc/meminfo");
  std::uint64_t total_kib = 0, available_kib = 0;
  for (std::string line; std::getline(file, line) && (total_kib == 0 || available_kib == 0);) {
    const auto value = [&] { return std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10); };
    if (line.starts_with("MemTotal:")) total_kib = value();
    if (line.starts_with("MemAvailable:")) available_kib = value();
  }
  if (total_kib == 0 || available_kib == 0) return std::nullopt;
  const std::optional<GroupMemory> group = group_limits().memory;
  if (group && group->limit_bytes / 1024 < total_kib) {
    total_kib = std::max<std::uint64_t>(group->limit_bytes / 1024, 1);
    available_kib = std::min(available_kib, total_kib - std::min(total_kib, group->used_bytes / 1024));
  }
  return MachineMemory{total_kib, std::min(total_kib, available_kib)};
}

}  // namespace

std::optional<MemoryUsage> memory_usage() {
  const std::optional<MachineMemory> machine = machine_memory();
  if (!machine) return std::nullopt;
  return MemoryUsage{.used_bytes = (machine->total_kib - machine->available_kib) * 1024,
                     .total_bytes = machine->total_kib * 1024,
                     .own_bytes = resident_bytes_of_tree(::getpid())};
}

double free_memory() {
  const std::optional<MachineMemory> machine = machine_memory();
  return machine ? static_cast<double>(machine->available_kib) / static_cast<double>(machine->total_kib) : 1;
}

std::uint64_t resident_bytes_of_tree(pid_t process) {
  std::uint64_t bytes = 0;
  for (std::vector<pid_t> processes{process}; !processes.empty();) {
    const pid_t next = processes.back();
    processes.pop_back();
    bytes += unshared_resident_bytes(next);
    add_children(next, processes);
  }
  return bytes;
}

}  // namespace cadre::resources
