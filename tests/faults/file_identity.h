// Identifies a file whatever its name: by its inode number and its birth time, because inode numbers are reused.
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

// Returns the file's identity; empty if there is no such file. Follows no link.
inline FileIdentity identity_at(int directory, const char* name) {
  struct statx status{};
  constexpr unsigned wanted = STATX_INO | STATX_BTIME | STATX_TYPE | STATX_MODE;
  if (::statx(directory, name, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, wanted, &status) != 0) return {};
  char text[64];
  std::snprintf(text, sizeof text, "%llu-%lld.%u", static_cast<unsigned long long>(status.stx_ino),
                static_cast<long long>(status.stx_btime.tv_sec), status.stx_btime.tv_nsec);
  return {text, status.stx_mode};
}

// Names of the files, in a folder of the test, that record what a file or a directory held when it was synced: the
// file's bytes, or a line "<identity> <name>" for each name in the directory.
inline std::string bytes_name(const FileIdentity& file) { return file.text + ".bytes"; }
inline std::string names_name(const FileIdentity& directory) { return directory.text + ".names"; }

}  // namespace cadre::survival
