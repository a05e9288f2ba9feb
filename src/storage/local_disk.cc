#include "storage/local_disk.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace cadre::storage {
namespace fs = std::filesystem;
namespace {

// The numbers without a name in linux/magic.h are from statfs(2).
constexpr std::array<long, 14> kLocal{
    EXT4_SUPER_MAGIC,  // ext2 and ext3 too
    BTRFS_SUPER_MAGIC,
    XFS_SUPER_MAGIC,
    TMPFS_MAGIC,
    PROC_SUPER_MAGIC,
    RAMFS_MAGIC,
    OVERLAYFS_SUPER_MAGIC,
    F2FS_SUPER_MAGIC,
    REISERFS_SUPER_MAGIC,
    ECRYPTFS_SUPER_MAGIC,
    0xca451a4e,  // bcachefs
    0x2fc12fc1,  // ZFS
    0x3153464a,  // JFS
    0x3434,      // NILFS
};

fs::path existing(fs::path path) {
  std::error_code error;
  while (!fs::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  return path;
}

bool is_below(const fs::path& path, const fs::path& directory) {
  const fs::path relative = fs::weakly_canonical(path).lexically_relative(fs::weakly_canonical(directory));
  return !relative.empty() && *relative.begin() != "..";
}

}  // namespace

bool is_on_local_disk(const fs::path& path) {
  const fs::path whole = fs::absolute(path);
  const char* const network = std::getenv("CADRE_NETWORK_FILE_SYSTEM");
  if (network != nullptr && *network != '\0' && is_below(whole, network)) return false;
  struct statfs status{};
  if (::statfs(existing(whole).c_str(), &status) != 0) return true;  // the first write there reports the error
  return std::ranges::find(kLocal, static_cast<long>(status.f_type)) != kLocal.end();
}

}  // namespace cadre::storage
