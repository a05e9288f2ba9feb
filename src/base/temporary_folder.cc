#include "base/temporary_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include "base/system_error.h"
#include "cadre/error.h"

namespace cadre::base {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kDrawn = "XXXXXX";

FileDescriptor open_folder(const fs::path& path) {
  return FileDescriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool is_removed(const FileDescriptor& folder) {
  struct stat status{};
  return ::fstat(folder.get(), &status) == 0 && status.st_nlink == 0;
}

void remove_if_possible(const fs::path& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

// Removes folders that no process has locked.
void remove_abandoned(const fs::path& parent, const std::string& prefix) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(prefix) || name.size() != prefix.size() + kDrawn.size()) continue;
    const FileDescriptor folder = open_folder(entry.path());
    if (folder && ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0) remove_if_possible(entry.path());
  }
}

}  // namespace

fs::path parent_of_temporary_folders() {
  std::error_code fault;
  fs::path parent = fs::temp_directory_path(fault);
  if (!fault) return parent;
  constexpr std::array names{"TMPDIR", "TMP", "TEMP", "TEMPDIR"};  // in the order in which the library looks at them
  const auto is_set = [](const char* variable) { return std::getenv(variable) != nullptr; };
  const auto* const name = std::ranges::find_if(names, is_set);
  const std::string place = name == names.end() ? "/tmp" : std::string(*name) + "=" + std::getenv(*name);
  throw StorageError("the folder for temporary files cannot be used (" + place + "): " + fault.message() +
                     "; set TMPDIR to a directory that is there");
}

TemporaryFolder::TemporaryFolder(std::string_view purpose) : TemporaryFolder(parent_of_temporary_folders(), purpose) {}

TemporaryFolder::TemporaryFolder(const fs::path& parent, std::string_view purpose) {
  const std::string prefix = std::string(purpose) + "-";
  remove_abandoned(parent, prefix);
  while (!held_) {
    std::string name = parent / (prefix + std::string(kDrawn));
    if (::mkdtemp(name.data()) == nullptr) throw_storage_error("make the folder", name);
    FileDescriptor folder = open_folder(name);
    if (!folder && errno != ENOENT) throw_storage_error("open", name);
    // Another process may have found the folder before it was locked and be removing it; then make another.
    const bool is_taken = !folder || (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK);
    if (is_taken || is_removed(folder)) continue;
    held_ = std::move(folder);
    path_ = std::move(name);
  }
}

TemporaryFolder::~TemporaryFolder() { remove_if_possible(path_); }

}  // namespace cadre::base
