#include "base/directory.h"

#include <sys/stat.h>

#include "base/file.h"

namespace cadre::base {

FileInfo info_of(const std::filesystem::path& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) throw_storage_error("read", path);
  using Kind = FileInfo::Kind;
  const Kind kind = S_ISREG(status.st_mode) ? Kind::file : S_ISDIR(status.st_mode) ? Kind::directory : Kind::other;
  return {kind, status.st_size};
}

}  // namespace cadre::base
