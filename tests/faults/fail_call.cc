// A library to preload: makes one call of a program of Cadre fail, or ends a process at that call. The environment says
// which call, and how:
//
//   CADRE_FAIL_ROLE    the processes whose calls count: controller, server or worker (all workers together)
//   CADRE_FAIL_ONLY    only calls count whose name, a space and the path (or other object) contain this text
//   CADRE_FAIL_CALL    the number of the call among these, from 1
//   CADRE_FAIL_HOW     an error: ENOSPC of calls that need space, EIO of calls that write, signal or make something,
//                      EIO_READ of calls that read, EMFILE of calls that make a descriptor, ENOMEM of allocations;
//                      or kill_before, kill_half (a write ends after half of its bytes) or kill_after a call for EIO
//   CADRE_FAIL_REPORT  a file that gets a line about the call when it is reached
//   CADRE_FULL_WHILE   a file: as long as it exists, every call of that role that needs space fails with ENOSPC
//
// Calls that cannot fail in this way do not count. A process is recognised by the name that it gives itself. Sleeps of
// one second or more take a hundredth of their time, so that waiting costs no time.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace {

enum class Role { controller, server, worker, other };
enum class How { error, kill_before, kill_half, kill_after };

// A call has any of these traits and a plan has one: calls with the plan's trait count.
enum Trait : unsigned { changes = 1, needs_space = 2, makes_descriptor = 4, reads = 8, allocates = 16 };

struct Plan {
  Role role = Role::controller;
  const char* only = nullptr;
  long call = 0;
  How how = How::error;
  int error = 0;
  unsigned trait = changes;
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
  struct Failure {
    const char* name;
    int error;
    unsigned trait;
  };
  for (const Failure& failure :
       {Failure{"ENOSPC", ENOSPC, needs_space}, Failure{"EIO", EIO, changes}, Failure{"EIO_READ", EIO, reads},
        Failure{"EMFILE", EMFILE, makes_descriptor}, Failure{"ENOMEM", ENOMEM, allocates}}) {
    if (std::strcmp(how, failure.name) != 0) continue;
    plan.error = failure.error;
    plan.trait = failure.trait;
  }
  if (plan.error == 0)
    plan.how = std::strcmp(how, "kill_half") == 0    ? How::kill_half
               : std::strcmp(how, "kill_after") == 0 ? How::kill_after
                                                     : How::kill_before;
  return plan;
}

Plan plan;
Role role = Role::controller;
std::atomic<long>* calls = nullptr;  // calls of the role, in all of its processes

__attribute__((constructor)) void begin() {
  plan = read_plan();
  void* const shared = ::mmap(nullptr, sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) std::abort();
  calls = new (shared) std::atomic<long>(0);
}

// A call as text: its name, and the path that it uses.
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

// The outcome of a call.
struct Fate {
  int error = 0;  // the call fails with this; 0: it does not
  bool half = false;
  bool last = false;  // the process ends after the call
};

Fate fate_of(const char* name, const char* what, unsigned traits) {
  if (calls == nullptr || role != plan.role) return {};
  const int keep = errno;
  const bool full = plan.full_while != nullptr && (traits & needs_space) != 0 && ::access(plan.full_while, F_OK) == 0;
  errno = keep;
  if (full) return {.error = ENOSPC};
  if (plan.call == 0 || (traits & plan.trait) == 0) return {};
  const Line line(name, what);
  if (!counts(line) || ++*calls != plan.call) return {};
  write_report(line);
  if (plan.how == How::kill_before) die();
  return {.error = plan.error, .half = plan.how == How::kill_half, .last = plan.how != How::error};
}

// Returns the function that this library replaces.
template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

template <typename Function, typename... Arguments>
auto call(const char* name, const char* what, unsigned traits, Arguments... arguments) {
  Function* const function = real<Function>(name);
  using Result = decltype(function(arguments...));
  const Fate fate = fate_of(name, what, traits);
  if (fate.error != 0) {
    errno = fate.error;
    if constexpr (std::is_pointer_v<Result>) {
      return Result{nullptr};
    } else {
      return static_cast<Result>(-1);
    }
  }
  const Result result = function(arguments...);
  if (fate.last) die();
  return result;
}

// Does the same for a call that writes `size` bytes.
template <typename Function, typename... Rest>
ssize_t call_write(const char* name, int fd, const void* bytes, size_t size, Rest... rest) {
  Function* const function = real<Function>(name);
  const Fate fate = fate_of(name, nullptr, changes | needs_space);
  if (fate.error != 0) {
    errno = fate.error;
    return -1;
  }
  const ssize_t result = function(fd, bytes, fate.half ? size / 2 : size, rest...);
  if (fate.last) die();
  return result;
}

bool creates(int flags) { return (flags & O_CREAT) != 0; }
unsigned traits_of(int flags) {
  const bool is_read_only = (flags & O_ACCMODE) == O_RDONLY;
  return makes_descriptor | (is_read_only ? reads : changes) | (creates(flags) ? needs_space : 0U);
}

// Allocates with glibc's own functions, because looking up others allocates, too. A failed call returns null.
void* allocate(void* (*function)(size_t, size_t), size_t a, size_t b) {
  const Fate fate = fate_of("allocate", nullptr, allocates);
  if (fate.error == 0) return function(a, b);
  errno = fate.error;
  return nullptr;
}

mode_t mode_of(int flags, va_list rest) { return creates(flags) ? va_arg(rest, mode_t) : 0; }

}  // namespace

extern "C" {

#define CADRE_OPEN(name)                                                                       \
  int name(const char* path, int flags, ...) {                                                 \
    va_list rest;                                                                              \
    va_start(rest, flags);                                                                     \
    const mode_t mode = mode_of(flags, rest);                                                  \
    va_end(rest);                                                                              \
    return call<int(const char*, int, ...)>(#name, path, traits_of(flags), path, flags, mode); \
  }
CADRE_OPEN(open)
CADRE_OPEN(open64)

#define CADRE_OPENAT(name)                                                                                     \
  int name(int directory, const char* path, int flags, ...) {                                                  \
    va_list rest;                                                                                              \
    va_start(rest, flags);                                                                                     \
    const mode_t mode = mode_of(flags, rest);                                                                  \
    va_end(rest);                                                                                              \
    return call<int(int, const char*, int, ...)>(#name, path, traits_of(flags), directory, path, flags, mode); \
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
  return call<ssize_t(int, const iovec*, int)>("writev", nullptr, changes | needs_space, fd, parts, count);
}
ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t size, unsigned flags) {
  return call<ssize_t(int, off64_t*, int, off64_t*, size_t, unsigned)>(
      "copy_file_range", nullptr, changes | needs_space, from, from_offset, to, to_offset, size, flags);
}

int rename(const char* from, const char* to) {
  return call<int(const char*, const char*)>("rename", to, changes | needs_space, from, to);
}
int renameat(int from_directory, const char* from, int to_directory, const char* to) {
  return call<int(int, const char*, int, const char*)>("renameat", to, changes | needs_space, from_directory, from,
                                                       to_directory, to);
}
int mkdir(const char* path, mode_t mode) {
  return call<int(const char*, mode_t)>("mkdir", path, changes | needs_space, path, mode);
}
int rmdir(const char* path) { return call<int(const char*)>("rmdir", path, changes, path); }
int unlink(const char* path) { return call<int(const char*)>("unlink", path, changes, path); }
int unlinkat(int directory, const char* path, int flags) {
  return call<int(int, const char*, int)>("unlinkat", path, changes, directory, path, flags);
}

int ftruncate(int fd, off_t size) {
  return call<int(int, off_t)>("ftruncate", nullptr, changes | needs_space, fd, size);
}
int ftruncate64(int fd, off64_t size) {
  return call<int(int, off64_t)>("ftruncate64", nullptr, changes | needs_space, fd, size);
}
int fsync(int fd) { return call<int(int)>("fsync", nullptr, changes | needs_space, fd); }
int fdatasync(int fd) { return call<int(int)>("fdatasync", nullptr, changes | needs_space, fd); }
int flock(int fd, int operation) { return call<int(int, int)>("flock", nullptr, changes, fd, operation); }

pid_t fork() { return call<pid_t()>("fork", nullptr, changes); }
int socketpair(int domain, int type, int protocol, int ends[2]) {
  return call<int(int, int, int, int*)>("socketpair", nullptr, changes | makes_descriptor, domain, type, protocol,
                                        ends);
}
ssize_t send(int fd, const void* bytes, size_t size, int flags) {
  return call<ssize_t(int, const void*, size_t, int)>("send", nullptr, changes, fd, bytes, size, flags);
}
ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  return call<ssize_t(int, const msghdr*, int)>("sendmsg", nullptr, changes, fd, message, flags);
}
int eventfd(unsigned count, int flags) {
  return call<int(unsigned, int)>("eventfd", nullptr, changes | makes_descriptor, count, flags);
}
int signalfd(int fd, const sigset_t* mask, int flags) {
  return call<int(int, const sigset_t*, int)>("signalfd", nullptr, changes | makes_descriptor, fd, mask, flags);
}
int memfd_create(const char* name, unsigned flags) {
  return call<int(const char*, unsigned)>("memfd_create", name, changes | makes_descriptor, name, flags);
}
int dup2(int from, int to) { return call<int(int, int)>("dup2", nullptr, changes | makes_descriptor, from, to); }

int pipe2(int ends[2], int flags) { return call<int(int*, int)>("pipe2", nullptr, makes_descriptor, ends, flags); }
int dup(int fd) { return call<int(int)>("dup", nullptr, makes_descriptor, fd); }
int epoll_create1(int flags) { return call<int(int)>("epoll_create1", nullptr, makes_descriptor, flags); }
int timerfd_create(int clock, int flags) {
  return call<int(int, int)>("timerfd_create", nullptr, makes_descriptor, clock, flags);
}
FILE* fopen(const char* path, const char* mode) {
  return call<FILE*(const char*, const char*)>("fopen", path, makes_descriptor, path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  return call<FILE*(const char*, const char*)>("fopen64", path, makes_descriptor, path, mode);
}
DIR* opendir(const char* path) { return call<DIR*(const char*)>("opendir", path, makes_descriptor | reads, path); }

ssize_t read(int fd, void* bytes, size_t size) {
  return call<ssize_t(int, void*, size_t)>("read", nullptr, reads, fd, bytes, size);
}
ssize_t pread(int fd, void* bytes, size_t size, off_t offset) {
  return call<ssize_t(int, void*, size_t, off_t)>("pread", nullptr, reads, fd, bytes, size, offset);
}
ssize_t pread64(int fd, void* bytes, size_t size, off64_t offset) {
  return call<ssize_t(int, void*, size_t, off64_t)>("pread64", nullptr, reads, fd, bytes, size, offset);
}
ssize_t recvmsg(int fd, msghdr* message, int flags) {
  return call<ssize_t(int, msghdr*, int)>("recvmsg", nullptr, reads, fd, message, flags);
}
#define CADRE_STAT(name, type)                                                     \
  int name(const char* path, struct type* status) {                                \
    return call<int(const char*, struct type*)>(#name, path, reads, path, status); \
  }
CADRE_STAT(stat, stat)
CADRE_STAT(stat64, stat64)
CADRE_STAT(lstat, stat)
CADRE_STAT(lstat64, stat64)
int fstat(int fd, struct stat* status) { return call<int(int, struct stat*)>("fstat", nullptr, reads, fd, status); }
int fstat64(int fd, struct stat64* status) {
  return call<int(int, struct stat64*)>("fstat64", nullptr, reads, fd, status);
}

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void* malloc(size_t size) {
  return allocate([](size_t bytes, size_t) { return __libc_malloc(bytes); }, size, 0);
}
void* calloc(size_t count, size_t size) { return allocate(__libc_calloc, count, size); }
void* aligned_alloc(size_t alignment, size_t size) { return allocate(__libc_memalign, alignment, size); }
void* realloc(void* memory, size_t size) {
  const Fate fate = fate_of("allocate", nullptr, allocates);
  if (fate.error == 0) return __libc_realloc(memory, size);
  errno = fate.error;
  return nullptr;
}

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
