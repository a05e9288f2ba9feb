// Identifies a file whatever its name: by the number of its inode and its time of birth, as numbers are used again.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdio>
#include <string>

namespace cadre::survival {

struct FileIdentity {
  std::string text;  // "<inode>-<birth>"
  mode_t mode = 0;
};

// Empty where there is no such file. Follows no link.
inline FileIdentity identity_at(int directory, const char* name) {
  struct statx status{};
  constexpr unsigned wanted = STATX_INO | STATX_BTIME | STATX_TYPE | STATX_MODE;
  if (::statx(directory, name, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, wanted, &status) != 0) return {};
  char text[64];
  std::snprintf(text, sizeof text, "%llu-%lld.%u", static_cast<unsigned long long>(status.stx_ino),
                static_cast<long long>(status.stx_btime.tv_sec), status.stx_btime.tv_nsec);
  return {text, status.stx_mode};
}

// Names of the files, in a folder of the test's, that say what a file or a directory held when it was synced: its
// bytes, or a line "<identity> <name>" for each name in it.
inline std::string bytes_name(const FileIdentity& file) { return file.text + ".bytes"; }
inline std::string names_name(const FileIdentity& directory) { return directory.text + ".names"; }

}  // namespace cadre::survival
