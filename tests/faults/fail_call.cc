// A library to preload: lets one call of a program of Cadre's fail, or ends a process there. What and where comes from
// the environment:
//
//   CADRE_FAIL_ROLE    whose calls count: controller, server or worker (all workers together)
//   CADRE_FAIL_ONLY    only those count whose name, a space and what they are about contain this
//   CADRE_FAIL_CALL    which of them, from 1
//   CADRE_FAIL_HOW     an error (ENOSPC or EIO); kill_before, kill_half (a write ends after half of its bytes) or
//                      kill_after
//   CADRE_FAIL_REPORT  a file that gets a line about the call when it is reached
//   CADRE_FULL_WHILE   a file: as long as it exists, every call of that role that needs space fails with ENOSPC
//
// A full disk concerns only calls that need space, so the others do not count where HOW is ENOSPC. A process is known
// by the name that it gives itself. Waits of a second and more are a hundredth of that, so that patience costs no time.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

enum class Role { controller, server, worker, other };
enum class How { error, kill_before, kill_half, kill_after };

struct Plan {
  Role role = Role::controller;
  const char* only = nullptr;
  long call = 0;
  How how = How::error;
  int error = 0;
  const char* report = nullptr;
  const char* full_while = nullptr;
};

Role role_called(const char* name) {
  return std::strcmp(name, "worker") == 0       ? Role::worker
         : std::strcmp(name, "server") == 0     ? Role::server
         : std::strcmp(name, "controller") == 0 ? Role::controller
                                                : Role::other;
}

Plan read_plan() {
  Plan plan;
  const char* const role = std::getenv("CADRE_FAIL_ROLE");
  if (role == nullptr) return plan;
  plan.role = role_called(role);
  plan.full_while = std::getenv("CADRE_FULL_WHILE");
  const char* const call = std::getenv("CADRE_FAIL_CALL");
  const char* const how = std::getenv("CADRE_FAIL_HOW");
  if (call == nullptr || how == nullptr) return plan;
  plan.call = std::atol(call);
  plan.only = std::getenv("CADRE_FAIL_ONLY");
  plan.report = std::getenv("CADRE_FAIL_REPORT");
  plan.error = std::strcmp(how, "ENOSPC") == 0 ? ENOSPC : std::strcmp(how, "EIO") == 0 ? EIO : 0;
  if (plan.error == 0)
    plan.how = std::strcmp(how, "kill_half") == 0    ? How::kill_half
               : std::strcmp(how, "kill_after") == 0 ? How::kill_after
                                                     : How::kill_before;
  return plan;
}

Plan plan;
Role role = Role::controller;
std::atomic<long>* calls = nullptr;  // of the role, in all of its processes

__attribute__((constructor)) void begin() {
  plan = read_plan();
  void* const shared = ::mmap(nullptr, sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) std::abort();
  calls = new (shared) std::atomic<long>(0);
}

// A call in words: its name, and the path that it is about.
struct Line {
  Line(const char* name, const char* what) {
    std::snprintf(text, sizeof text, "%s %s", name, what == nullptr ? "" : what);
  }
  char text[512];
};

bool counts(const Line& line) { return plan.only == nullptr || std::strstr(line.text, plan.only) != nullptr; }

void write_report(const Line& line) {
  if (plan.report == nullptr) return;
  const long fd = ::syscall(SYS_openat, AT_FDCWD, plan.report, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  ::syscall(SYS_write, fd, line.text, std::strlen(line.text));
  ::syscall(SYS_write, fd, "\n", 1);
  ::syscall(SYS_close, fd);
}

[[noreturn]] void die() {
  for (;;) ::syscall(SYS_kill, ::syscall(SYS_getpid), SIGKILL);
}

// What is to become of a call.
struct Fate {
  int error = 0;  // it fails with that; 0: it does not
  bool half = false;
  bool last = false;  // the process ends behind it
};

Fate fate_of(const char* name, const char* what, bool needs_space) {
  if (calls == nullptr || role != plan.role) return {};
  const int keep = errno;
  const bool full = plan.full_while != nullptr && needs_space && ::access(plan.full_while, F_OK) == 0;
  errno = keep;
  if (full) return {.error = ENOSPC};
  if (plan.call == 0 || (plan.error == ENOSPC && !needs_space)) return {};
  const Line line(name, what);
  if (!counts(line) || ++*calls != plan.call) return {};
  write_report(line);
  if (plan.how == How::kill_before) die();
  return {.error = plan.error, .half = plan.how == How::kill_half, .last = plan.how != How::error};
}

// The function that this library stands before.
template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

template <typename Function, typename... Arguments>
auto call(const char* name, const char* what, bool needs_space, Arguments... arguments) {
  Function* const function = real<Function>(name);
  using Result = decltype(function(arguments...));
  const Fate fate = fate_of(name, what, needs_space);
  if (fate.error != 0) {
    errno = fate.error;
    return static_cast<Result>(-1);
  }
  const Result result = function(arguments...);
  if (fate.last) die();
  return result;
}

// The same for a call that writes `size` bytes.
template <typename Function, typename... Rest>
ssize_t call_write(const char* name, int fd, const void* bytes, size_t size, Rest... rest) {
  Function* const function = real<Function>(name);
  const Fate fate = fate_of(name, nullptr, true);
  if (fate.error != 0) {
    errno = fate.error;
    return -1;
  }
  const ssize_t result = function(fd, bytes, fate.half ? size / 2 : size, rest...);
  if (fate.last) die();
  return result;
}

bool creates(int flags) { return (flags & O_CREAT) != 0; }
bool writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

mode_t mode_of(int flags, va_list rest) { return creates(flags) ? va_arg(rest, mode_t) : 0; }

}  // namespace

extern "C" {

#define CADRE_OPEN(name)                                                                     \
  int name(const char* path, int flags, ...) {                                               \
    va_list rest;                                                                            \
    va_start(rest, flags);                                                                   \
    const mode_t mode = mode_of(flags, rest);                                                \
    va_end(rest);                                                                            \
    if (!writes(flags)) return real<int(const char*, int, ...)>(#name)(path, flags, mode);   \
    return call<int(const char*, int, ...)>(#name, path, creates(flags), path, flags, mode); \
  }
CADRE_OPEN(open)
CADRE_OPEN(open64)

#define CADRE_OPENAT(name)                                                                                   \
  int name(int directory, const char* path, int flags, ...) {                                                \
    va_list rest;                                                                                            \
    va_start(rest, flags);                                                                                   \
    const mode_t mode = mode_of(flags, rest);                                                                \
    va_end(rest);                                                                                            \
    if (!writes(flags)) return real<int(int, const char*, int, ...)>(#name)(directory, path, flags, mode);   \
    return call<int(int, const char*, int, ...)>(#name, path, creates(flags), directory, path, flags, mode); \
  }
CADRE_OPENAT(openat)
CADRE_OPENAT(openat64)

ssize_t write(int fd, const void* bytes, size_t size) {
  return call_write<ssize_t(int, const void*, size_t)>("write", fd, bytes, size);
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  return call_write<ssize_t(int, const void*, size_t, off_t)>("pwrite", fd, bytes, size, offset);
}
ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t offset) {
  return call_write<ssize_t(int, const void*, size_t, off64_t)>("pwrite64", fd, bytes, size, offset);
}
ssize_t writev(int fd, const iovec* parts, int count) {
  return call<ssize_t(int, const iovec*, int)>("writev", nullptr, true, fd, parts, count);
}
ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t size, unsigned flags) {
  return call<ssize_t(int, off64_t*, int, off64_t*, size_t, unsigned)>("copy_file_range", nullptr, true, from,
                                                                       from_offset, to, to_offset, size, flags);
}

int rename(const char* from, const char* to) {
  return call<int(const char*, const char*)>("rename", to, true, from, to);
}
int mkdir(const char* path, mode_t mode) { return call<int(const char*, mode_t)>("mkdir", path, true, path, mode); }
int rmdir(const char* path) { return call<int(const char*)>("rmdir", path, false, path); }
int unlink(const char* path) { return call<int(const char*)>("unlink", path, false, path); }
int unlinkat(int directory, const char* path, int flags) {
  return call<int(int, const char*, int)>("unlinkat", path, false, directory, path, flags);
}

int ftruncate(int fd, off_t size) { return call<int(int, off_t)>("ftruncate", nullptr, true, fd, size); }
int ftruncate64(int fd, off64_t size) { return call<int(int, off64_t)>("ftruncate64", nullptr, true, fd, size); }
int fsync(int fd) { return call<int(int)>("fsync", nullptr, true, fd); }
int fdatasync(int fd) { return call<int(int)>("fdatasync", nullptr, true, fd); }
int flock(int fd, int operation) { return call<int(int, int)>("flock", nullptr, false, fd, operation); }

pid_t fork() { return call<pid_t()>("fork", nullptr, false); }
int socketpair(int domain, int type, int protocol, int ends[2]) {
  return call<int(int, int, int, int*)>("socketpair", nullptr, false, domain, type, protocol, ends);
}
ssize_t send(int fd, const void* bytes, size_t size, int flags) {
  return call<ssize_t(int, const void*, size_t, int)>("send", nullptr, false, fd, bytes, size, flags);
}
ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  return call<ssize_t(int, const msghdr*, int)>("sendmsg", nullptr, false, fd, message, flags);
}
int eventfd(unsigned count, int flags) { return call<int(unsigned, int)>("eventfd", nullptr, false, count, flags); }
int signalfd(int fd, const sigset_t* mask, int flags) {
  return call<int(int, const sigset_t*, int)>("signalfd", nullptr, false, fd, mask, flags);
}
int memfd_create(const char* name, unsigned flags) {
  return call<int(const char*, unsigned)>("memfd_create", name, false, name, flags);
}
int dup2(int from, int to) { return call<int(int, int)>("dup2", nullptr, false, from, to); }

int prctl(int option, ...) {
  va_list rest;
  va_start(rest, option);
  const unsigned long a = va_arg(rest, unsigned long);
  const unsigned long b = va_arg(rest, unsigned long);
  const unsigned long c = va_arg(rest, unsigned long);
  const unsigned long d = va_arg(rest, unsigned long);
  va_end(rest);
  if (option == PR_SET_NAME) {
    const char* const name = reinterpret_cast<const char*>(a);  // NOLINT(performance-no-int-to-ptr)
    if (std::strncmp(name, "cadre-", 6) == 0) role = role_called(name + 6);
  }
  return static_cast<int>(::syscall(SYS_prctl, option, a, b, c, d));
}

int nanosleep(const timespec* time, timespec* left) {
  const timespec shorter{0, static_cast<long>(time->tv_sec) * 10'000'000};
  return static_cast<int>(::syscall(SYS_nanosleep, time->tv_sec > 0 && time->tv_sec < 100 ? &shorter : time, left));
}

}  // extern "C"
