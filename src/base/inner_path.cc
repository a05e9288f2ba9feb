#include "base/inner_path.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "base/system_error.h"
#include "cadre/error.h"
#include "cadre/value.h"

namespace cadre::base {
namespace fs = std::filesystem;
namespace {

std::vector<std::string> names_of(std::string_view path) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    names.emplace_back(path.substr(at, slash - at));
    at = slash + 1;
  }
  return names;
}

// For kernels before 5.6: opens one component after the other.
int open_step_by_step(int root, const std::string& path, int flags) {
  FileDescriptor present(::fcntl(root, F_DUPFD_CLOEXEC, 0));
  const std::vector<std::string> names = names_of(path);
  for (std::size_t i = 0; present && i < names.size(); ++i) {
    const bool is_last = i + 1 == names.size();
    const int step = is_last ? flags : O_PATH | O_DIRECTORY;
    present = FileDescriptor(::openat(present.get(), names[i].c_str(), step | O_NOFOLLOW | O_CLOEXEC));
  }
  return present.release();
}

// Fails with ELOOP for a link in the path, with EXDEV for a path that leaves `root`.
int open_beneath(int root, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const long file = ::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how);
  if (file < 0 && (errno == ENOSYS || errno == EPERM)) return open_step_by_step(root, path, flags);
  return static_cast<int>(file);
}

[[noreturn]] void fail(const char* doing, const fs::path& path) {
  if (errno == ELOOP || errno == EXDEV || errno == ENOTDIR)
    throw StorageError(std::string("cannot ") + doing + " " + path.string() +
                       ": a link lies on its way, and Cadre makes none there");
  throw_storage_error(doing, path);
}

// Opens the parent directory of a path. Returns an empty descriptor with ENOENT if it does not exist.
FileDescriptor open_parent(const fs::path& root, const InnerPath& path, const char* doing) {
  FileDescriptor directory = open_file(root, O_PATH | O_DIRECTORY, "open");
  const fs::path parent = fs::path(path.text()).parent_path();
  if (parent.empty()) return directory;
  FileDescriptor below(open_beneath(directory.get(), parent, O_RDONLY | O_DIRECTORY));
  if (!below && errno != ENOENT) fail(doing, root / path);
  return below;
}

std::string last_name(const InnerPath& path) { return fs::path(path.text()).filename(); }

void remove_at(int directory, const std::string& name, const fs::path& shown) {
  if (::unlinkat(directory, name.c_str(), 0) == 0 || errno == ENOENT) return;
  if (errno != EISDIR && errno != EPERM) throw_storage_error("remove", shown);
  const int inner = ::openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (inner < 0) throw_storage_error("remove", shown);
  const auto close = [](DIR* open) { ::closedir(open); };
  const std::unique_ptr<DIR, decltype(close)> entries(::fdopendir(inner), close);
  if (!entries) {
    ::close(inner);
    throw_storage_error("remove", shown);
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(entries.get())) names.emplace_back(entry->d_name);
  for (const std::string& below : names) {
    if (below != "." && below != "..") remove_at(::dirfd(entries.get()), below, shown / below);
  }
  if (::unlinkat(directory, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) throw_storage_error("remove", shown);
}

}  // namespace

std::string fault_of_inner_path(std::string_view path) {
  if (path.empty()) return "it is empty";
  if (path.front() == '/') return "it is absolute";
  if (path.find('\0') != path.npos) return "it has a zero byte";
  for (const std::string& name : names_of(path)) {
    if (name == "..") return "it has \"..\"";
    if (name.empty() || name == ".") return "it is not written in its shortest form";
  }
  return {};
}

InnerPath::InnerPath(std::string_view path, std::string_view source) : text_(path) {
  if (const std::string fault = fault_of_inner_path(path); !fault.empty())
    throw StorageError(std::string(source) + " has the path " + cadre::to_json(Value(text_)) +
                       ", which is none inside its directory: " + fault +
                       ". Cadre writes no such path: do not trust where it comes from");
}

FileDescriptor open_inside(const fs::path& root, const InnerPath& path, int flags) {
  const FileDescriptor directory = open_file(root, O_PATH | O_DIRECTORY, "open");
  FileDescriptor file(open_beneath(directory.get(), path.text(), flags));
  if (!file && errno != ENOENT) fail("open", root / path);
  return file;
}

void remove_inside(const fs::path& root, const InnerPath& path) {
  if (const FileDescriptor parent = open_parent(root, path, "remove"))
    remove_at(parent.get(), last_name(path), root / path);
}

bool rename_inside(const fs::path& root, const InnerPath& from, const InnerPath& to) {
  const FileDescriptor old_parent = open_parent(root, from, "rename");
  if (!old_parent) return false;
  const bool stays = fs::path(from.text()).parent_path() == fs::path(to.text()).parent_path();
  const FileDescriptor other_parent = stays ? FileDescriptor() : open_parent(root, to, "rename to");
  const FileDescriptor& new_parent = stays ? old_parent : other_parent;
  if (new_parent && ::renameat(old_parent.get(), last_name(from).c_str(), new_parent.get(), last_name(to).c_str()) == 0)
    return true;
  if (new_parent && errno == ENOENT) return false;
  throw_storage_error("rename " + (root / from).string() + " to", root / to);
}

}  // namespace cadre::base
