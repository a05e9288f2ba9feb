// A disk that fails under SQLite while this object lives: some writes succeed, then every one fails.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cerrno>

#include "store/sqlite.h"

namespace cadre::test_support {

class FailingDisk {
 public:
  // Lets `writes_left` writes succeed, then every write fails with `error` (ENOSPC, EIO...).
  FailingDisk(int writes_left, int error) {
    left_ = writes_left;
    error_ = error;
    original_ = reinterpret_cast<Write*>(vfs()->xGetSystemCall(vfs(), "pwrite64"));
    replace(&write_or_fail);
  }
  ~FailingDisk() { replace(original_); }
  FailingDisk(const FailingDisk&) = delete;
  FailingDisk& operator=(const FailingDisk&) = delete;

  static bool is_possible() { return vfs()->xGetSystemCall(vfs(), "pwrite64") != nullptr; }
  bool has_failed() const { return left_ < 0; }

 private:
  using Write = ssize_t(int, const void*, size_t, off_t);

  static sqlite3_vfs* vfs() { return sqlite3_vfs_find(nullptr); }
  static void replace(Write* write) {
    vfs()->xSetSystemCall(vfs(), "pwrite64", reinterpret_cast<sqlite3_syscall_ptr>(write));
  }
  static ssize_t write_or_fail(int fd, const void* bytes, size_t size, off_t offset) {
    if (--left_ >= 0) return original_(fd, bytes, size, offset);
    errno = error_;
    return -1;
  }

  static inline std::atomic<int> left_;
  static inline int error_;
  static inline Write* original_;
};

}  // namespace cadre::test_support
