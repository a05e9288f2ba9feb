// A thread that can lock no file, as on a file system without locks.
#pragma once

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <exception>
#include <thread>

namespace cadre::test_support {

// Refuses locks to this thread, and to those that it starts. Returns false if that fails.
inline bool refuse_locks() {
  std::array<sock_filter, 4> filter = {
      {{.code = BPF_LD | BPF_W | BPF_ABS, .jt = 0, .jf = 0, .k = offsetof(seccomp_data, nr)},
       {.code = BPF_JMP | BPF_JEQ | BPF_K, .jt = 0, .jf = 1, .k = SYS_flock},
       {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = SECCOMP_RET_ERRNO | ENOSYS},
       {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = SECCOMP_RET_ALLOW}}};
  const sock_fprog program{.len = filter.size(), .filter = filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Calls a function in such a thread. Returns false, without a call, if there cannot be one here.
template <class Act>
bool without_locks(const Act& act) {
  bool is_without = false;
  std::thread([&] {
    is_without = refuse_locks();
    if (!is_without) return;
    try {
      act();
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }).join();
  return is_without;
}

}  // namespace cadre::test_support
