#include "base/file_descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/system_error.h"

namespace cadre::base {

void FileDescriptor::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

FileDescriptor open_file(const std::filesystem::path& path, int flags, std::string_view doing) {
  FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (!file) throw_storage_error(doing, path);
  return file;
}

void close_written(FileDescriptor& file, const std::filesystem::path& path) {
  if (::close(file.release()) != 0) throw_storage_error("write", path);
}

}  // namespace cadre::base
