// Threads in which some system calls fail, as in places where there is no more space, or no locks.
#pragma once

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <thread>
#include <vector>

namespace cadre::test_support {

// Lets these calls fail with this error in this thread, and in those that it starts. Returns false if that cannot be.
inline bool refuse_calls(std::initializer_list<std::uint32_t> calls, std::uint32_t error) {
  std::vector<sock_filter> filter{
      {.code = BPF_LD | BPF_W | BPF_ABS, .jt = 0, .jf = 0, .k = offsetof(seccomp_data, nr)}};
  auto to_refusal = static_cast<std::uint8_t>(calls.size());  // beyond the other comparisons and the permission
  for (const std::uint32_t call : calls)
    filter.push_back({.code = BPF_JMP | BPF_JEQ | BPF_K, .jt = to_refusal--, .jf = 0, .k = call});
  filter.push_back({.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = SECCOMP_RET_ALLOW});
  filter.push_back({.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = SECCOMP_RET_ERRNO | error});
  const sock_fprog program{.len = static_cast<unsigned short>(filter.size()), .filter = filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Takes the privileges of root from this thread, and from those that it starts: it may open what its permissions allow.
// Returns false if that cannot be.
inline bool drop_privileges() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  return ::syscall(SYS_capset, &header, none) == 0;
}

// Calls a function in a thread of its own that `restrict` has restricted. Returns false, without a call, if it cannot
// be.
template <class Restrict, class Act>
bool in_restricted_thread(const Restrict& restrict, const Act& act) {
  bool is_restricted = false;
  std::thread([&] {
    is_restricted = restrict();
    if (!is_restricted) return;
    try {
      act();
    } catch (const std::exception& failure) {
      ADD_FAILURE() << failure.what();
    }
  }).join();
  return is_restricted;
}

// Calls a function in a thread in which these calls fail. Returns false, without a call, if there cannot be one here.
template <class Act>
bool without_calls(std::initializer_list<std::uint32_t> calls, std::uint32_t error, const Act& act) {
  return in_restricted_thread([&] { return refuse_calls(calls, error); }, act);
}

// In a thread that may open what its permissions allow, also where tests run as root.
template <class Act>
bool without_privileges(const Act& act) {
  return in_restricted_thread(drop_privileges, act);
}

// In a thread that can start no other one, as under a limit of processes.
template <class Act>
bool without_threads(const Act& act) {
  return without_calls({SYS_clone3, SYS_clone}, EAGAIN, act);
}

// In one that cannot make a directory, as on a full disk.
template <class Act>
bool without_space(const Act& act) {
  return without_calls({SYS_mkdir, SYS_mkdirat}, ENOSPC, act);
}

// In one that can lock no file, as on a file system without locks.
template <class Act>
bool without_locks(const Act& act) {
  return without_calls({SYS_flock}, ENOSYS, act);
}

}  // namespace cadre::test_support
