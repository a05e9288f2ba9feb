#include "base/directory.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "base/system_error.h"
#include "cadre/error.h"

namespace cadre::base {
namespace fs = std::filesystem;
namespace {

void copy_regular_file(const fs::path& from, const fs::path& to) {
  const FileDescriptor source = open_file(from, O_RDONLY | O_NOFOLLOW, "read");
  FileDescriptor target = open_own_file(to, O_WRONLY | O_CREAT | O_TRUNC);
  if (::ioctl(target.get(), FICLONE, source.get()) == 0) return close_written(target, to);
  constexpr std::size_t chunk = std::size_t{64} << 20;
  bool kernel_copies = true;
  std::string buffer;
  for (;;) {
    ssize_t copied = kernel_copies ? ::copy_file_range(source.get(), nullptr, target.get(), nullptr, chunk, 0) : -1;
    if (copied < 0) {
      if (kernel_copies && (errno == ENOSPC || errno == EDQUOT)) throw_storage_error("write", to);
      kernel_copies = false;  // not possible between these file systems: copy through memory
      buffer.resize(std::size_t{1} << 20);
      copied = ::read(source.get(), buffer.data(), buffer.size());
      if (copied < 0) throw_storage_error("read", from);
      write_all(target.get(), std::string_view(buffer).substr(0, static_cast<std::size_t>(copied)), to);
    }
    if (copied == 0) break;
  }
  close_written(target, to);
}

// A function that copies or links one regular file.
using Reproduce = void (*)(const fs::path& from, const fs::path& to);

void reproduce_tree(const fs::path& from, const fs::path& to, Reproduce file) {
  make_directory(to);
  for (const std::string& name : list_directory(from)) {
    const FileInfo::Kind kind = info_of(from / name).kind;
    if (kind == FileInfo::Kind::directory) {
      reproduce_tree(from / name, to / name, file);
    } else if (kind == FileInfo::Kind::file) {
      file(from / name, to / name);
    } else {
      throw StorageError("cannot copy " + (from / name).string() +
                         ": a checkpoint holds files and directories only, no links or devices");
    }
  }
}

}  // namespace

FileInfo info_of(const fs::path& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) throw_storage_error("read", path);
  using Kind = FileInfo::Kind;
  const Kind kind = S_ISREG(status.st_mode) ? Kind::file : S_ISDIR(status.st_mode) ? Kind::directory : Kind::other;
  return {kind, status.st_size};
}

void sync_directory(const fs::path& path) {
  const FileDescriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory && errno == EACCES) return;
  if (!directory) throw_storage_error("read", path);
  if (::fsync(directory.get()) != 0 && errno != EINVAL) throw_storage_error("sync", path);
}

void sync_tree(const fs::path& path) {
  for (const std::string& name : list_directory(path)) {
    const FileInfo::Kind kind = info_of(path / name).kind;
    if (kind == FileInfo::Kind::directory) sync_tree(path / name);
    if (kind == FileInfo::Kind::file) sync_file(path / name);
  }
  sync_directory(path);
}

bool make_directory(const fs::path& path) {
  if (::mkdir(path.c_str(), 0777) == 0) return true;
  if (errno != EEXIST) throw_storage_error("make the directory", path);
  return false;
}

bool make_own_directory(const fs::path& path) {
  if (make_directory(path)) return true;
  require_own_directory(path);
  return false;
}

void require_own_directory(const fs::path& path) {
  const FileDescriptor directory(::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (directory || errno == ENOENT) return;
  if (errno == ENOTDIR || errno == ELOOP)
    throw StorageError("cannot use " + path.string() + ": it is a link or a file, and Cadre makes a directory there");
  throw_storage_error("open", path);
}

void make_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return;
  errno = error.value();
  throw_storage_error("make the directory", path);
}

void make_directories_durably(const fs::path& path) {
  std::error_code unreadable;
  if (path.empty() || fs::is_directory(path, unreadable)) return;
  const fs::path parent = path.parent_path();
  if (parent != path) make_directories_durably(parent);
  make_directories(path);
  sync_directory(parent.empty() ? "." : parent);
}

void remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) throw StorageError("cannot remove " + path.string() + ": " + error.message());
}

void copy_tree(const fs::path& from, const fs::path& to) { reproduce_tree(from, to, copy_regular_file); }

void link_file(const fs::path& from, const fs::path& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return;
  copy_regular_file(from, to);  // different file systems, no support for links, or too many links
}

void link_tree(const fs::path& from, const fs::path& to) { reproduce_tree(from, to, link_file); }

std::vector<std::string> list_directory(const fs::path& path) {
  std::error_code error;
  std::vector<std::string> names;
  for (auto entry = fs::directory_iterator(path, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) throw StorageError("cannot list " + path.string() + ": " + error.message());
  std::ranges::sort(names);
  return names;
}

void enter_directory(const fs::path& path) {
  if (::chdir(path.c_str()) != 0) throw_storage_error("enter", path);
}

}  // namespace cadre::base
