#include "gate.h"
#include "base/system_error.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "cadre/error.h"

namespace cadre::bench {
namespace {

namespace fs = std::filesystem;

fs::path arrived_path(const fs::path& path) { return path.string() + ".arrived"; }
fs::path open_path(const fs::path& path) { return path.string() + ".open"; }

base::FileDescriptor open_pipe(const fs::path& path, int flags) {
  base::FileDescriptor pipe(::open(path.c_str(), flags | O_CLOEXEC));
  if (!pipe) base::throw_storage_error("open", path);
  return pipe;
}

// Opens both ends, so that no process finds the pipe without its other end.
base::FileDescriptor make_named_pipe(const fs::path& path) {
  if (::mkfifo(path.c_str(), 0666) != 0) base::throw_storage_error("make", path);
  return open_pipe(path, O_RDWR);
}

void read_one_byte(int fd, const fs::path& path) {
  char byte = 0;
  for (;;) {
    const ssize_t got = ::read(fd, &byte, 1);
    if (got == 1) return;
    if (got == 0) throw Error("nobody is at the other end of " + path.string());
    if (errno != EINTR) base::throw_storage_error("read", path);
  }
}

}  // namespace

Gate::Gate(fs::path path)
    : path_(std::move(path)),
      arrived_(make_named_pipe(arrived_path(path_))),
      open_(make_named_pipe(open_path(path_))) {}

void Gate::await(std::int64_t count, const Process& process) const {
  for (std::int64_t i = 0; i < count; ++i) {
    pollfd waited[] = {{arrived_.get(), POLLIN, 0}, {process.output(), POLLIN, 0}};
    while (::poll(waited, 2, -1) < 0 && errno == EINTR) {
    }
    if ((waited[0].revents & POLLIN) == 0) throw Error("a part of the benchmark ended too early");
    read_one_byte(arrived_.get(), arrived_path(path_));
  }
}

void Gate::open(std::int64_t count) const {
  base::write_all(open_.get(), std::string(static_cast<std::size_t>(count), '.'), open_path(path_));
}

void pass_gate(const fs::path& path) {
  base::write_all(open_pipe(arrived_path(path), O_WRONLY).get(), ".", arrived_path(path));
  read_one_byte(open_pipe(open_path(path), O_RDONLY).get(), open_path(path));
}

}  // namespace cadre::bench
