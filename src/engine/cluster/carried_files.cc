#include "engine/cluster/carried_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <utility>

#include "base/directory.h"
#include "base/file.h"
#include "base/inner_path.h"
#include "base/system_error.h"
#include "cadre/error.h"

namespace cadre::engine::cluster {
namespace fs = std::filesystem;
namespace {

// Names of what is not whole yet; recovery removes them, as it removes checkpoints that were not reported.
constexpr const char* kUnfinishedPrefix = ".reporting_arrives_";

// Paths below a directory, with the sizes of files in bytes.
struct Tree {
  std::vector<std::string> directories = {};
  std::map<std::string, std::uint64_t> files = {};
};

void list_below(const fs::path& source, const std::string& path, Tree& tree) {
  const base::FileInfo info = base::info_of(path.empty() ? source : source / path);
  if (info.kind == base::FileInfo::Kind::other)
    throw StorageError((source / path).string() + " is neither a file nor a directory");
  if (info.kind == base::FileInfo::Kind::file) {
    tree.files[path] = static_cast<std::uint64_t>(info.size);
    return;
  }
  tree.directories.push_back(path);
  for (const std::string& name : base::list_directory(source / path))
    list_below(source, path.empty() ? name : path + "/" + name, tree);
}

Piece faulty(const std::string& place, std::string fault) {
  return {.kind = Piece::Kind::fault, .place = place, .fault = std::move(fault)};
}

}  // namespace

std::string fault_of_place(const std::string& place) { return base::fault_of_inner_path(place); }

std::vector<std::string> files_below(const fs::path& directory) {
  Tree tree;
  list_below(directory, "", tree);
  std::vector<std::string> files;
  for (const auto& [path, bytes] : tree.files) files.push_back(path);
  return files;
}

fs::path unfinished_beside(const fs::path& place) {
  static std::atomic<std::uint64_t> number = 0;
  return place.parent_path() / fmt::format("{}{}_{}", kUnfinishedPrefix, ::getpid(), ++number);
}

KnownFile::KnownFile(const fs::path& path) : opened_(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)) {}

bool KnownFile::is_at(const fs::path& path) const {
  struct stat own{};
  struct stat other{};
  return opened_ && ::fstat(opened_.get(), &own) == 0 && ::lstat(path.c_str(), &other) == 0 &&
         own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

// ---- Sending

FileSender::FileSender(std::string place, fs::path source) : place_(std::move(place)), source_(std::move(source)) {}

void FileSender::begin() {
  Tree tree;
  list_below(source_, "", tree);
  std::uint64_t total = 0;
  for (const auto& [path, bytes] : tree.files) {
    total += bytes;
    files_.push_back(path);
  }
  if (total > max_carried_bytes)
    throw StorageError(fmt::format(
        "{} has {} bytes, and at most {} go over the connection of a node: set storage_path to a file system that the "
        "nodes share",
        source_.string(), total, max_carried_bytes));
  directories_ = std::move(tree.directories);
  std::ranges::reverse(directories_);
  std::ranges::reverse(files_);
  buffer_.resize(piece_bytes);
}

Piece FileSender::next() {
  try {
    if (!std::exchange(has_begun_, true)) begin();
    if (!directories_.empty()) {
      const std::string path = std::move(directories_.back());
      directories_.pop_back();
      return {.kind = Piece::Kind::directory, .place = place_, .path = path};
    }
    if (!files_.empty()) return next_of_file();
    is_done_ = true;
    return {.kind = Piece::Kind::end, .place = place_};
  } catch (const Error& error) {
    is_done_ = true;
    return faulty(place_, error.what());
  }
}

Piece FileSender::next_of_file() {
  const fs::path path = files_.back().empty() ? source_ : source_ / files_.back();
  if (!file_) {
    file_ = base::FileDescriptor(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    struct stat status{};
    if (!file_ || ::fstat(file_.get(), &status) != 0) base::throw_storage_error("read", path);
    is_executable_ = (status.st_mode & S_IXUSR) != 0;
  }
  std::size_t count = 0;
  while (count < buffer_.size()) {
    const ::ssize_t read = ::read(file_.get(), buffer_.data() + count, buffer_.size() - count);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) base::throw_storage_error("read", path);
    if (read == 0) break;
    count += static_cast<std::size_t>(read);
  }
  Piece piece{.kind = Piece::Kind::bytes,
              .place = place_,
              .path = files_.back(),
              .is_executable = is_executable_,
              .bytes = std::span(buffer_).first(count)};
  if (count < buffer_.size()) {  // its end
    file_.reset();
    files_.pop_back();
  }
  return piece;
}

// ---- Receiving

FileReceiver::FileReceiver(const fs::path& directory, const std::string& place)
    : place_(directory / place), unfinished_(unfinished_beside(place_)) {}

FileReceiver::~FileReceiver() {
  std::error_code ignored;
  file_.reset();
  fs::remove_all(unfinished_, ignored);
}

bool FileReceiver::take(const Piece& piece) {
  if (piece.kind == Piece::Kind::fault) throw StorageError(piece.fault);
  if (piece.kind == Piece::Kind::end) {
    file_.reset();
    base::remove_tree(place_);
    base::rename(unfinished_, place_);
    return true;
  }
  if (!piece.path.empty()) base::InnerPath(piece.path, "a node");
  base::make_directories(place_.parent_path());
  if (piece.kind == Piece::Kind::directory) {
    base::make_own_directory(piece.path.empty() ? unfinished_ : unfinished_ / piece.path);
    return false;
  }
  total_ += piece.bytes.size();
  if (total_ > max_carried_bytes) throw StorageError("more arrives than may be carried");
  if (!file_ || path_ != piece.path) open(piece);
  for (std::span<const std::byte> rest = piece.bytes; !rest.empty();) {
    const ::ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written < 0 && errno != EINTR) base::throw_storage_error("write", unfinished_ / piece.path);
    if (written > 0) rest = rest.subspan(static_cast<std::size_t>(written));
  }
  return false;
}

// The directory is new, and only files and directories of this object are in it.
void FileReceiver::open(const Piece& piece) {
  const fs::path path = piece.path.empty() ? unfinished_ : unfinished_ / piece.path;
  constexpr ::mode_t readable = 0666;
  constexpr ::mode_t runnable = 0777;
  file_ = base::FileDescriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                      piece.is_executable ? runnable : readable));
  if (!file_) base::throw_storage_error("write", path);
  path_ = piece.path;
}

}  // namespace cadre::engine::cluster
