#include "storage/file_storage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <span>

#include "base/directory.h"
#include "base/file.h"
#include "base/file_descriptor.h"
#include "base/system_error.h"
#include "storage/copy.h"

namespace cadre::storage {
namespace fs = std::filesystem;
namespace {

// Of files that are being written; no file that is stored has such a name.
constexpr std::string_view kUnfinished = ".cadre_unfinished_";

// What the system says of a call tells whether it may work a moment later.
StorageFault::Kind kind_of(int error) {
  using Kind = StorageFault::Kind;
  if (error == EACCES || error == EPERM || error == EROFS) return Kind::denied;
  if (error == ENOTDIR || error == ENAMETOOLONG || error == ELOOP || error == EINVAL) return Kind::lasting;
  return Kind::passing;
}

// As a fault of the storage, and not of the local disk: a full one, too, is waited for like one that is away.
template <class Act>
auto in_storage(Act act) {
  errno = 0;  // it stays so where the standard library made the call: then nothing is known
  try {
    return act();
  } catch (const StorageFault&) {
    throw;
  } catch (const StorageError& error) {
    throw StorageFault(kind_of(errno), error.what());
  }
}

// A name beside the file's own; two writers of one file do not meet in it.
fs::path unfinished(const fs::path& path) {
  static std::atomic<std::uint64_t> count = 0;
  return path.parent_path() / fmt::format("{}{}_{}", kUnfinished, ::getpid(), ++count);
}

template <class Write>
auto replace(const fs::path& path, const Write& write) {
  return in_storage([&] {
    base::make_directories(path.parent_path());
    const fs::path beside = unfinished(path);
    try {
      auto written = write(beside);
      base::rename(beside, path);
      return written;
    } catch (...) {
      const int reason = errno;
      ::unlink(beside.c_str());
      errno = reason;
      throw;
    }
  });
}

std::optional<StoredFile> stored_file(const fs::path& path, std::string name) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    in_storage([&] { base::throw_storage_error("read", path); });
  }
  if (!S_ISREG(status.st_mode)) return std::nullopt;
  return StoredFile{std::move(name), status.st_size,
                    static_cast<double>(status.st_mtim.tv_sec) + 1e-9 * static_cast<double>(status.st_mtim.tv_nsec)};
}

void list_into(std::vector<StoredFile>& files, const fs::path& root, const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(root / folder, error)) return;
  for (const std::string& name : base::list_directory(root / folder)) {
    if (name.starts_with(kUnfinished)) continue;
    const std::string whole = folder.empty() ? name : folder + "/" + name;
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

Contents FileStorage::upload(const fs::path& file, const std::string& name) {
  LocalFile source(file);  // a fault of the local file is none of the storage's
  return replace(root_ / name, [&](const fs::path& path) { return write_pieces(path, std::ref(source)); });
}

std::optional<std::string> FileStorage::read(const std::string& name) {
  if (!find(name)) return std::nullopt;
  return in_storage([&] { return base::read_file(root_ / name); });
}

Contents FileStorage::download(const std::string& name, const fs::path& file) {
  if (!find(name)) throw StorageFault(StorageFault::Kind::lasting, (root_ / name).string() + " is not there");
  LocalFile source(root_ / name);
  return write_pieces(file, std::ref(source));
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
  in_storage([&] { base::throw_storage_error("remove", root_ / name); });
}

void FileStorage::remove_folder(const std::string& folder) {
  in_storage([&] { base::remove_tree(root_ / folder); });
}

}  // namespace cadre::storage
