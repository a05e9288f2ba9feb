// A library to preload: records what a disk is sure to hold when its power fails. Each sync of a file copies its bytes,
// and each sync of a directory its names, into the folder CADRE_SYNCED; file_identity.h says under which names. The
// syncs themselves are omitted, because no power is really lost.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "file_identity.h"

namespace {

using cadre::survival::FileIdentity;
using cadre::survival::identity_at;

// A file that is complete under its name, or not there at all: a process may be killed while it writes.
class Memory {
 public:
  explicit Memory(std::string name) : name_(std::move(name)) {
    static std::atomic<int> number{0};
    unfinished_ = name_ + "." + std::to_string(::getpid()) + "." + std::to_string(++number);
    fd_ = ::open(unfinished_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  }
  bool add(const char* bytes, std::size_t size) { return ::write(fd_, bytes, size) == static_cast<ssize_t>(size); }
  bool finish() { return ::close(fd_) == 0 && ::rename(unfinished_.c_str(), name_.c_str()) == 0; }

 private:
  std::string name_;
  std::string unfinished_;
  int fd_ = -1;
};

bool remember_bytes(int fd, Memory memory) {
  const int readable = ::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDONLY | O_CLOEXEC);
  if (readable < 0) return false;
  char bytes[65536];
  ssize_t size = 0;
  off_t offset = 0;
  while ((size = ::pread(readable, bytes, sizeof bytes, offset)) > 0) {
    if (!memory.add(bytes, static_cast<std::size_t>(size))) break;
    offset += size;
  }
  ::close(readable);
  return size == 0 && memory.finish();
}

bool remember_names(int fd, Memory memory) {
  DIR* const directory = ::fdopendir(::openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory == nullptr) return false;
  bool good = true;
  while (const dirent* const entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    const FileIdentity file = identity_at(::dirfd(directory), entry->d_name);
    if (file.text.empty()) continue;  // it is gone
    const std::string line = file.text + " " + name + "\n";
    good = good && memory.add(line.data(), line.size());
  }
  ::closedir(directory);
  return good && memory.finish();
}

// Locks out other processes, so that the state that is read first is also written first.
class Turn {
 public:
  explicit Turn(const std::string& folder)
      : fd_(::open((folder + "turn").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) {
    while (::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~Turn() { ::close(fd_); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  int fd_;
};

int remember(int fd) {
  const char* const folder = std::getenv("CADRE_SYNCED");
  if (folder == nullptr) return 0;
  const FileIdentity file = identity_at(fd, "");
  const std::string place = std::string(folder) + "/";
  const Turn turn(place);
  const bool good = S_ISDIR(file.mode)   ? remember_names(fd, Memory(place + names_name(file)))
                    : S_ISREG(file.mode) ? remember_bytes(fd, Memory(place + bytes_name(file)))
                                         : !file.text.empty();
  if (good) return 0;
  errno = EIO;
  return -1;
}

}  // namespace

extern "C" {
int fsync(int fd) { return remember(fd); }
int fdatasync(int fd) { return remember(fd); }
}
