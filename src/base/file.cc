#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/directory.h"
#include "base/system_error.h"
#include "cadre/error.h"

namespace cadre::base {
namespace fs = std::filesystem;
namespace {

fs::path temporary_name(fs::path path) { return path += ".tmp"; }

}  // namespace

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
  // Not ftruncate(): ext4 writes what was cut to nothing and filled again to the disk as soon as it is closed.
  FileDescriptor file = open_own_file(path, O_WRONLY | O_CREAT | O_TRUNC);
  write_all(file.get(), bytes, path);
  close_written(file, path);
}

void sync_file(const fs::path& path) {
  const FileDescriptor file = open_file(path, O_RDONLY, "sync");
  if (::fsync(file.get()) != 0) throw_storage_error("sync", path);
}

void replace_file(const fs::path& path, std::string_view bytes) {
  const fs::path temporary = temporary_name(path);
  write_file(temporary, bytes);
  base::rename(temporary, path);
}

void replace_private_file(const fs::path& path, std::string_view bytes) {
  const fs::path temporary = temporary_name(path);
  // A new file, private from the start: others may have opened one that was there, and would read from it.
  if (::unlink(temporary.c_str()) != 0 && errno != ENOENT) throw_storage_error("remove", temporary);
  FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!file) throw_storage_error("write", temporary);
  write_all(file.get(), bytes, temporary);
  close_written(file, temporary);
  base::rename(temporary, path);
}

void replace_file_durably(const fs::path& path, std::string_view bytes) {
  const fs::path temporary = temporary_name(path);
  write_file(temporary, bytes);
  sync_file(temporary);
  base::rename(temporary, path);
  sync_directory(path.has_parent_path() ? path.parent_path() : ".");
}

std::optional<ReadableFile> ReadableFile::open(const fs::path& path, Links links) {
  // O_NONBLOCK: otherwise opening a pipe without a writer would block forever.
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (links == Links::refuse ? O_NOFOLLOW : 0);
  FileDescriptor fd(::open(path.c_str(), flags));
  if (!fd && errno == ENOENT) return std::nullopt;
  if (!fd) throw_storage_error("read", path);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) throw_storage_error("read", path);
  if (!S_ISREG(status.st_mode)) throw StorageError("cannot read " + path.string() + ": it is no regular file");
  return ReadableFile(path, std::move(fd));
}

std::uint64_t ReadableFile::size() const {
  struct stat status{};
  if (::fstat(fd_.get(), &status) != 0) throw_storage_error("read", path_);
  return static_cast<std::uint64_t>(status.st_size);
}

std::size_t ReadableFile::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::pread(fd_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_storage_error("read", path_);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void ReadableFile::sync() const {
  if (::fsync(fd_.get()) != 0) throw_storage_error("sync", path_);
}

bool AppendFile::resume(const Stamp& stamp) {
  std::error_code error;
  const auto size = fs::file_size(path_, error);
  if (error || size < static_cast<std::uintmax_t>(stamp.size)) return stamp.size == 0;
  const std::string whole = read_file(path_);
  const std::string_view content = std::string_view(whole).substr(0, static_cast<std::size_t>(stamp.size));
  if (checksum_of(content) != stamp.checksum) return false;
  if (whole.size() > content.size() && ::ftruncate(open_own_file(path_, O_WRONLY).get(), stamp.size) != 0)
    throw_storage_error("cut", path_);
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
  if (!fd_) {
    FileDescriptor file = open_own_file(path_, O_WRONLY | O_CREAT | O_APPEND);
    // A failed write that could not be undone has left a part of its bytes.
    if (::ftruncate(file.get(), size_) != 0) throw_storage_error("write", path_);
    fd_ = std::move(file);
  }
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
  fd_.reset();  // refers to the replaced file
  size_ = static_cast<std::int64_t>(bytes.size());
  checksum_.reset();
  checksum_.add(bytes);
}

void rename(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw_storage_error("rename " + from.string() + " to", to);
}

}  // namespace cadre::base
