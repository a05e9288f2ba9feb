#include "base/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>
#include <string>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/file_descriptor.h"
#include "base/system_error.h"
#include "cadre/error.h"

namespace cadre::base {
namespace fs = std::filesystem;

OutputFile::OutputFile(fs::path named) : named_(std::move(named)), written_(named_) {
  std::error_code unknown;
  const fs::file_status status = fs::symlink_status(named_, unknown);
  if (fs::exists(status) && !fs::is_regular_file(status)) return;
  // A name that nobody has: the user's files beside it stay, and another user cannot have put a link there.
  written_ += fmt::format(".{:08x}.tmp", std::random_device()());
  const FileDescriptor file = open_file(written_, O_WRONLY | O_CREAT | O_EXCL, "write");
  const auto mode = static_cast<::mode_t>(status.permissions() & fs::perms::all);
  if (!fs::exists(status) || ::fchmod(file.get(), mode) == 0) return;
  const std::string reason = last_system_error();
  ::unlink(written_.c_str());
  throw StorageError("cannot give " + written_.string() + " the permissions of " + named_.string() + ": " + reason);
}

OutputFile::~OutputFile() {
  if (is_finished_ || written_ == named_) return;
  std::error_code missing;
  fs::remove(written_, missing);
}

void OutputFile::finish() {
  if (written_ != named_) base::rename(written_, named_);
  is_finished_ = true;
}

void write_output_file(const fs::path& named, std::string_view bytes) {
  OutputFile output(named);
  FileDescriptor file = open_file(output.path(), O_WRONLY | O_CREAT | O_TRUNC, "write");
  write_all(file.get(), bytes, output.path());
  close_written(file, output.path());
  output.finish();
}

}  // namespace cadre::base
