#include "surroundings.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "engine/local/oom_kills.h"
#include "scenario.h"

namespace cadre::system_tests {
namespace {

namespace fs = std::filesystem;

void require(bool done, const std::string& what) {
  if (done) return;
  say("cannot: " + what + ": " + std::strerror(errno));
  ::_exit(0);
}

fs::path small_cgroup_of(pid_t process) {
  return engine::local::oom_counter_file().parent_path() / ("cadre_test_" + std::to_string(process));
}

// Writes into an existing file.
bool write(const fs::path& file, const std::string& text) {
  std::ofstream stream(file, std::ios::in | std::ios::out);
  stream << text << std::flush;
  return static_cast<bool>(stream);
}

// Enters mount namespaces as root, or as root of a new user namespace.
void take_own_mounts() {
  const std::string user = std::to_string(::getuid());
  const std::string group = std::to_string(::getgid());
  if (::unshare(CLONE_NEWNS) != 0) {
    require(::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0, "make namespaces");
    require(write("/proc/self/setgroups", "deny") && write("/proc/self/uid_map", "0 " + user + " 1") &&
                write("/proc/self/gid_map", "0 " + group + " 1"),
            "map the user");
  }
  require(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "have mounts of its own");
}

}  // namespace

void take_own_oom_counter() {
  take_own_mounts();
  std::string file = (fs::temp_directory_path() / "cadre_oom_XXXXXX").string();
  ::close(::mkstemp(file.data()));
  write(file, "oom_kill 0\n");
  const bool mounted = ::mount(file.c_str(), engine::local::oom_counter_file().c_str(), nullptr, MS_BIND, nullptr) == 0;
  fs::remove(file);
  require(mounted, "mount over " + engine::local::oom_counter_file().string());
}

void take_own_small_disk() {
  take_own_mounts();
  const fs::path place = fs::temp_directory_path();
  require(::mount("none", place.c_str(), "tmpfs", 0, "nr_inodes=100,mode=1777") == 0, "mount on " + place.string());
}

void take_small_cgroup() {
  const fs::path events = engine::local::oom_counter_file();
  errno = ENOENT;
  require(events.filename() == "memory.events", "find a cgroup of version 2 with the memory controller");
  const fs::path group = small_cgroup_of(::getpid());
  std::error_code error;
  const bool made = fs::create_directory(group, error) && write(group / "memory.max", "268435456") &&
                    write(group / "memory.swap.max", "0") && write(group / "cgroup.procs", "0");
  if (!made) fs::remove(group, error);
  require(made, "make and enter " + group.string());
}

void remove_small_cgroup(pid_t process) { fs::remove(small_cgroup_of(process)); }

}  // namespace cadre::system_tests
