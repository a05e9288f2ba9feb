// Changes the fuzzer's root to CADRE_FUZZ_ROOT, if that is set. The root has only the files that run.sh made, so an
// absolute path or a link that a reader follows is visible afterwards. The working directory stays outside, so that
// libFuzzer finds its files by relative paths.
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

int fail(const char* doing) {
  std::fprintf(stderr, "cannot %s: %s; without CADRE_FUZZ_ROOT a fuzzer needs no root of its own\n", doing,
               std::strerror(errno));
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* const root = std::getenv("CADRE_FUZZ_ROOT");
  if (root == nullptr) return 0;
  const int spaces = CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER);
  if (::unshare(spaces) != 0) return fail("leave the namespace");
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return fail("keep mounts to itself");
  // The sanitizers read /proc.
  if (::mount("/proc", (std::string(root) + "/proc").c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
    return fail("mount /proc");
  if (::chroot(root) != 0) return fail("change the root");
  return 0;
}
