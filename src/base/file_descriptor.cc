#include "base/file_descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/system_error.h"
#include "cadre/error.h"

namespace cadre::base {

void FileDescriptor::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

FileDescriptor open_file(const std::filesystem::path& path, int flags, std::string_view doing) {
  FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (!file) throw_storage_error(doing, path);
  return file;
}

FileDescriptor open_own_file(const std::filesystem::path& path, int flags) {
  // O_NONBLOCK: otherwise opening a pipe without a reader would block forever.
  FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666));
  if (!file && errno != ELOOP && errno != ENXIO) throw_storage_error("write", path);
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    throw StorageError("cannot write " + path.string() +
                       ": it is a link, a pipe or a device, and Cadre makes none there");
  return file;
}

void close_written(FileDescriptor& file, const std::filesystem::path& path) {
  if (::close(file.release()) != 0) throw_storage_error("write", path);
}

}  // namespace cadre::base
