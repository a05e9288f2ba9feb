#include "storage/file_storage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <memory>
#include <random>
#include <span>
#include <thread>

#include "base/clock.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/file_descriptor.h"
#include "base/system_error.h"
#include "storage/copy.h"

namespace cadre::storage {
namespace fs = std::filesystem;
namespace {

// Prefix of files that are being written; no stored file has such a name.
constexpr std::string_view kUnfinished = ".cadre_unfinished_";

// Returns the kind of fault for an errno: passing if the call may succeed a moment later.
StorageFault::Kind kind_of(int error) {
  using Kind = StorageFault::Kind;
  if (error == EACCES || error == EPERM || error == EROFS) return Kind::denied;
  if (error == ENOTDIR || error == ENAMETOOLONG || error == ELOOP || error == EINVAL) return Kind::lasting;
  return Kind::passing;
}

// Runs `act` and turns StorageError into a fault of the storage rather than of the local disk. A full storage is
// retried like an unreachable one.
template <class Act>
auto in_storage(Act act) {
  errno = 0;  // stays 0 if the standard library made the call: then the cause is unknown
  try {
    return act();
  } catch (const StorageFault&) {
    throw;
  } catch (const StorageError& error) {
    throw StorageFault(kind_of(errno), error.what());
  }
}

// Calls `act` with a function that returns the pieces of a local file. An error of that file stays what it is, also in
// in_storage().
template <class Act>
auto with_pieces_of(const FileToUpload& file, const Act& act) {
  LocalFile source(file);
  std::exception_ptr error;
  const auto next = [&]() -> std::string_view {
    try {
      return source();
    } catch (const StorageError&) {
      error = std::current_exception();
      throw;
    }
  };
  try {
    return act(next);
  } catch (const StorageFault&) {
    if (error) std::rethrow_exception(error);
    throw;
  }
}

// Throws the StorageFault for a failed call of this file.
[[noreturn]] void fail(const char* call, const fs::path& path) {
  const int error = errno;
  try {
    base::throw_storage_error(call, path);
  } catch (const StorageError& fault) {
    throw StorageFault(kind_of(error), fault.what());
  }
}

// A file in the root directory. A conditional writer holds a lock on it.
constexpr const char* kLockFile = ".cadre_unfinished_lock";

// Longest time between the version check and the rename. A writer that was stopped in between must check again.
constexpr double kLongestLook = 2;  // seconds
constexpr auto kLockPatience = std::chrono::seconds(20);
constexpr double kLongestWrite = 60;  // seconds between two pieces of a file

// A lock that excludes writers on all machines, as far as the file system shares locks between them. Released when
// its process ends.
class RootLock {
 public:
  explicit RootLock(const fs::path& root) : file_(base::open_file(root / kLockFile, O_RDWR | O_CREAT, "lock")) {
    const auto until = std::chrono::steady_clock::now() + kLockPatience;
    while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) {
        has_locks_ = false;
        break;
      }
      if (std::chrono::steady_clock::now() > until)
        throw StorageFault(StorageFault::Kind::passing,
                           fmt::format("{} has been locked by another process for {} s", root.string(),
                                       std::chrono::seconds(kLockPatience).count()));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    since_ = base::boot_seconds();
  }
  bool has_locks() const { return has_locks_; }
  // Returns true if this process may have been stopped, or its machine asleep, for so long that others took the lock.
  bool is_old() const { return base::boot_seconds() - since_ > kLongestLook; }

 private:
  base::FileDescriptor file_;
  bool has_locks_ = true;
  double since_ = 0;
};

// Returns the version of a file: every write makes a new file, with a new inode or time. Opening the file makes a
// network file system ask its server.
std::optional<Version> version_at(const fs::path& path) {
  const base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    base::throw_storage_error("read", path);
  }
  return fmt::format("{}.{}.{}.{}", status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_size);
}

// Returns how the names of the files begin that this process writes: no other process has such names, even on another
// machine.
std::string own_prefix() {
  static const unsigned int own = std::random_device()();
  return fmt::format("{}{:08x}_{}_", kUnfinished, own, ::getpid());
}

// Returns a unique temporary name in the file's directory.
fs::path unfinished(const fs::path& path) {
  static std::atomic<std::uint64_t> count = 0;
  return path.parent_path() / fmt::format("{}{}", own_prefix(), ++count);
}

// A temporary file that is removed unless it was renamed.
class Unfinished {
 public:
  explicit Unfinished(const fs::path& path) : path_(unfinished(path)) {}
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() {
    const int reason = errno;  // in_storage() reads it
    ::unlink(path_.c_str());
    errno = reason;
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Returns the present time by the clock that the times of files in a directory are of.
double time_in(const fs::path& directory) {
  const Unfinished file(directory / "time");
  base::write_file(file.path(), "");
  struct stat status{};
  if (::stat(file.path().c_str(), &status) != 0) base::throw_storage_error("read", file.path());
  return seconds_of(status.st_mtim);
}

// Returns true for a file that was being written by another process, which has not gone on since a time.
bool is_abandoned(const fs::path& file, double since) {
  const std::string name = file.filename();
  if (!name.starts_with(kUnfinished) || name == kLockFile || name.starts_with(own_prefix())) return false;
  struct stat status{};
  return ::lstat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) && seconds_of(status.st_mtim) < since;
}

void remove_abandoned_below(const fs::path& folder, double since) {
  std::error_code gone;
  for (fs::directory_iterator it(folder, gone); it != fs::directory_iterator(); it.increment(gone)) {
    std::error_code unreadable;
    if (it->is_symlink(unreadable)) continue;  // what is behind it is not the storage's
    if (it->is_directory(unreadable)) {
      remove_abandoned_below(it->path(), since);
    } else if (is_abandoned(it->path(), since)) {
      ::unlink(it->path().c_str());
    }
  }
}

// Replaces a file atomically and waits for the disk: after a loss of power it is whole or absent. Callers delete the
// local copy of a stored file.
template <class Write>
auto replace(const fs::path& path, const Write& write) {
  return in_storage([&] {
    base::make_directories_durably(path.parent_path());
    const Unfinished beside(path);
    auto written = write(beside.path());
    base::sync_file(beside.path());
    base::rename(beside.path(), path);
    base::sync_directory(path.parent_path());
    return written;
  });
}

std::optional<StoredFile> stored_file(const fs::path& path, std::string name) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    fail("read", path);
  }
  if (!S_ISREG(status.st_mode)) return std::nullopt;
  return StoredFile{std::move(name), status.st_size, seconds_of(status.st_mtim)};
}

// Returns true if a directory exists. Throws StorageFault if that cannot be found out: such a folder may hold files.
bool is_folder(const fs::path& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0) return S_ISDIR(status.st_mode);
  if (errno == ENOENT || errno == ENOTDIR) return false;
  fail("read", path);
}

void list_into(std::vector<StoredFile>& files, const fs::path& root, const std::string& folder) {
  if (!is_folder(root / folder)) return;
  std::error_code error;
  for (const std::string& name : base::list_directory(root / folder)) {
    if (name.starts_with(kUnfinished)) continue;
    const std::string whole = folder.empty() ? name : folder + "/" + name;
    if (fs::is_symlink(fs::symlink_status(root / whole, error))) continue;  // what is behind it is not the storage's
    if (auto file = stored_file(root / whole, whole)) {
      files.push_back(*std::move(file));
    } else {
      list_into(files, root, whole);
    }
  }
}

}  // namespace

void FileStorage::write(const std::string& name, std::string_view bytes) {
  replace(root_ / name, [&](const fs::path& path) {
    base::write_file(path, bytes);
    return true;
  });
}

Contents FileStorage::upload(const FileToUpload& file, const std::string& name) {
  return with_pieces_of(file, [&](const auto& next) {
    return replace(root_ / name, [&](const fs::path& path) { return write_pieces(path, next); });
  });
}

std::optional<std::string> FileStorage::read(const std::string& name) {
  if (!find(name)) return std::nullopt;
  return in_storage([&] { return base::read_file(root_ / name); });
}

Contents FileStorage::download(const std::string& name, const fs::path& file) {
  if (!find(name)) throw StorageFault(StorageFault::Kind::lasting, (root_ / name).string() + " is not there");
  LocalFile source = in_storage([&] { return LocalFile(root_ / name); });
  return write_pieces(file, [&] { return in_storage([&] { return source(); }); });
}

std::optional<StoredFile> FileStorage::find(const std::string& name) { return stored_file(root_ / name, name); }

std::vector<StoredFile> FileStorage::list(const std::string& folder) {
  return in_storage([&] {
    std::vector<StoredFile> files;
    list_into(files, root_, folder);
    return files;
  });
}

void FileStorage::remove(const std::string& name) {
  if (::unlink((root_ / name).c_str()) == 0 || errno == ENOENT || errno == ENOTDIR) return;
  fail("remove", root_ / name);
}

void FileStorage::remove_folder(const std::string& folder) {
  in_storage([&] { base::remove_tree(root_ / folder); });
}

void FileStorage::remove_unfinished() {
  in_storage([&] {
    if (is_folder(root_)) remove_abandoned_below(root_, time_in(root_) - kLongestWrite);
  });
}

// ---- Conditional writes

bool FileStorage::has_conditional_writes() {
  return in_storage([&] {
    base::make_directories_durably(root_);
    return RootLock(root_).has_locks();
  });
}

std::optional<VersionedBytes> FileStorage::read_versioned(const std::string& name) {
  constexpr int kAttempts = 20;
  for (int attempt = 1;; ++attempt) {  // the file may be replaced meanwhile
    const auto before = version_of(name);
    if (!before) return std::nullopt;
    auto bytes = read(name);
    if (bytes && version_of(name) == before) return VersionedBytes{*std::move(bytes), *before};
    if (attempt == kAttempts)
      throw StorageFault(StorageFault::Kind::passing, (root_ / name).string() + " changes all the time");
  }
}

std::optional<Version> FileStorage::version_of(const std::string& name) {
  return in_storage([&] { return version_at(root_ / name); });
}

std::optional<Version> FileStorage::write_if(const std::string& name, std::string_view bytes,
                                             const std::optional<Version>& expected) {
  return in_storage([&] {
    base::make_directories_durably((root_ / name).parent_path());
    const Unfinished file(root_ / name);
    base::write_file(file.path(), bytes);
    return replace_if(file.path(), name, expected);
  });
}

std::optional<Version> FileStorage::upload_if(const FileToUpload& local, const std::string& name,
                                              const std::optional<Version>& expected) {
  return with_pieces_of(local, [&](const auto& next) {
    return in_storage([&] {
      base::make_directories_durably((root_ / name).parent_path());
      const Unfinished file(root_ / name);
      write_pieces(file.path(), next);
      return replace_if(file.path(), name, expected);
    });
  });
}

std::optional<Version> FileStorage::replace_if(const fs::path& unfinished, const std::string& name,
                                               const std::optional<Version>& expected) {
  base::sync_file(unfinished);
  const auto version = rename_if(unfinished, name, expected);
  if (version) base::sync_directory((root_ / name).parent_path());
  return version;
}

std::optional<Version> FileStorage::rename_if(const fs::path& unfinished, const std::string& name,
                                              const std::optional<Version>& expected) {
  for (;;) {
    const RootLock lock(root_);
    if (version_at(root_ / name) != expected) return std::nullopt;
    const auto version = version_at(unfinished);
    if (lock.is_old()) continue;
    base::rename(unfinished, root_ / name);
    return version;
  }
}

}  // namespace cadre::storage
