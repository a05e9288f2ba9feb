#include "store/experiment_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "base/file.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/system_error.h"
#include "cadre/error.h"

namespace cadre::store {
namespace {

constexpr int kAttempts = 10;
constexpr useconds_t kPauseMicroseconds = 5'000;
constexpr const char* kUnknown = "a process that has not said who it is";

// Returns the holder named in the file. Only for people: the lock itself is the kernel's.
std::string describe_holder(const std::filesystem::path& path) {
  try {
    if (!base::ReadableFile::open(path, base::ReadableFile::Links::follow)) return kUnknown;  // refuses a pipe
    const Config holder(base::parse_json(base::read_file(path), path.string()).dict());
    return fmt::format("process {} on {}, for {} s", holder.get<std::int64_t>("pid"), holder.get<std::string>("host"),
                       std::time(nullptr) - holder.get<std::int64_t>("since"));
  } catch (const Error&) {
    return kUnknown;
  }
}

// Writes this process into the file. Errors are ignored: on a full disk the lock works without it.
void describe_this_holder(int file) {
  const std::string text =
      base::to_json(Dict{{"pid", ::getpid()}, {"host", base::host_name()}, {"since", std::time(nullptr)}}) + "\n";
  if (::ftruncate(file, 0) != 0 || ::write(file, text.data(), text.size()) < 0) return;
}

}  // namespace

ExperimentLock::ExperimentLock(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kFileName;
  file_ = base::open_own_file(path, O_RDWR | O_CREAT);
  // Tries again, because a call of holder() in another process holds the lock for an instant.
  bool locked = false;
  for (int attempt = 0; !locked && attempt < kAttempts; ++attempt) {
    if (attempt > 0) ::usleep(kPauseMicroseconds);
    locked = ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno != EWOULDBLOCK) base::throw_storage_error("lock", path);
  }
  if (!locked) {
    throw StorageError("the experiment in " + directory.string() + " is being run already, by " +
                       describe_holder(path) + "; wait for it or stop it first");
  }
  describe_this_holder(file_.get());
}

std::optional<std::string> ExperimentLock::holder(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kFileName;
  // O_NONBLOCK: otherwise opening a pipe without a writer would block forever.
  const base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  if (!file) base::throw_storage_error("open", path);
  if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0) return std::nullopt;  // shared, for concurrent calls
  if (errno != EWOULDBLOCK) base::throw_storage_error("lock", path);
  return describe_holder(path);
}

}  // namespace cadre::store
