#include "base/file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/directory.h"
#include "cadre/error.h"

namespace cadre::base {
namespace fs = std::filesystem;
namespace {

FileDescriptor open_file(const fs::path& path, int flags, const char* doing) {
  FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (!file) throw_storage_error(doing, path);
  return file;
}

void close_checked(FileDescriptor& file, const fs::path& path) {
  if (::close(file.release()) != 0) throw_storage_error("write", path);
}

void copy_regular_file(const fs::path& from, const fs::path& to) {
  const FileDescriptor source = open_file(from, O_RDONLY | O_NOFOLLOW, "read");
  FileDescriptor target = open_file(to, O_WRONLY | O_CREAT | O_TRUNC, "write");
  if (::ioctl(target.get(), FICLONE, source.get()) == 0) return close_checked(target, to);
  constexpr std::size_t chunk = std::size_t{64} << 20;
  bool kernel_copies = true;
  std::string buffer;
  for (;;) {
    ssize_t copied = kernel_copies ? ::copy_file_range(source.get(), nullptr, target.get(), nullptr, chunk, 0) : -1;
    if (copied < 0) {
      if (kernel_copies && (errno == ENOSPC || errno == EDQUOT)) throw_storage_error("write", to);
      kernel_copies = false;  // not between these file systems: through memory instead
      buffer.resize(std::size_t{1} << 20);
      copied = ::read(source.get(), buffer.data(), buffer.size());
      if (copied < 0) throw_storage_error("read", from);
      write_all(target.get(), std::string_view(buffer).substr(0, static_cast<std::size_t>(copied)), to);
    }
    if (copied == 0) break;
  }
  close_checked(target, to);
}

}  // namespace

void FileDescriptor::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

std::string last_system_error() { return std::strerror(errno); }

void throw_storage_error(std::string_view doing, const fs::path& path) {
  const bool full = errno == ENOSPC || errno == EDQUOT;
  const std::string message = "cannot " + std::string(doing) + " " + path.string() + ": " + last_system_error();
  if (full) throw OutOfSpace(message);
  throw StorageError(message);
}

std::string read_file(const fs::path& path) {
  const FileDescriptor file = open_file(path, O_RDONLY, "read");
  std::string content;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_storage_error("read", path);
    if (got == 0) return content;
    content.append(buffer, static_cast<std::size_t>(got));
  }
}

void write_all(int fd, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_storage_error("write", path);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void write_file(const fs::path& path, std::string_view bytes) {
  FileDescriptor file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC, "write");
  write_all(file.get(), bytes, path);
  close_checked(file, path);
}

void replace_file(const fs::path& path, std::string_view bytes) {
  fs::path temporary = path;
  temporary += ".tmp";
  write_file(temporary, bytes);
  base::rename(temporary, path);
}

bool AppendFile::resume(const Stamp& stamp) {
  std::error_code error;
  const auto size = fs::file_size(path_, error);
  if (error || size < static_cast<std::uintmax_t>(stamp.size)) return stamp.size == 0;
  const std::string whole = read_file(path_);
  const std::string_view content = std::string_view(whole).substr(0, static_cast<std::size_t>(stamp.size));
  if (checksum_of(content) != stamp.checksum) return false;
  if (whole.size() > content.size() && ::truncate(path_.c_str(), stamp.size) != 0) throw_storage_error("cut", path_);
  checksum_.reset();
  checksum_.add(content);
  size_ = stamp.size;
  return true;
}

void AppendFile::resume() {
  const std::string content = fs::exists(path_) ? read_file(path_) : std::string();
  checksum_.reset();
  checksum_.add(content);
  size_ = static_cast<std::int64_t>(content.size());
}

void AppendFile::append(std::string_view bytes) {
  if (!fd_) fd_ = open_file(path_, O_WRONLY | O_CREAT | O_APPEND, "write");
  try {
    write_all(fd_.get(), bytes, path_);
  } catch (const StorageError&) {
    if (::ftruncate(fd_.get(), size_) != 0) fd_.reset();
    throw;
  }
  size_ += static_cast<std::int64_t>(bytes.size());
  checksum_.add(bytes);
}

void AppendFile::replace(std::string_view bytes) {
  replace_file(path_, bytes);
  fd_.reset();  // that of the file that was there
  size_ = static_cast<std::int64_t>(bytes.size());
  checksum_.reset();
  checksum_.add(bytes);
}

void sync_directory(const fs::path& path) {
  const FileDescriptor directory = open_file(path, O_RDONLY | O_DIRECTORY, "read");
  if (::fsync(directory.get()) != 0) throw_storage_error("sync", path);
}

bool make_directory(const fs::path& path) {
  if (::mkdir(path.c_str(), 0777) == 0) return true;
  if (errno != EEXIST) throw_storage_error("make the directory", path);
  return false;
}

void make_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return;
  errno = error.value();
  throw_storage_error("make the directory", path);
}

bool rename_if_there(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return true;
  if (errno != ENOENT) throw_storage_error("rename " + from.string() + " to", to);
  return false;
}

void rename(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw_storage_error("rename " + from.string() + " to", to);
}

void remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) throw StorageError("cannot remove " + path.string() + ": " + error.message());
}

void copy_tree(const fs::path& from, const fs::path& to) {
  make_directory(to);
  for (const std::string& name : list_directory(from)) {
    const FileInfo::Kind kind = info_of(from / name).kind;
    if (kind == FileInfo::Kind::directory) {
      copy_tree(from / name, to / name);
    } else if (kind == FileInfo::Kind::file) {
      copy_regular_file(from / name, to / name);
    } else {
      throw StorageError("cannot copy " + (from / name).string() +
                         ": a checkpoint holds files and directories only, no links or devices");
    }
  }
}

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

}  // namespace cadre::base
