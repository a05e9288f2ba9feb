#include "tune/study_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "base/directory.h"
#include "base/file.h"
#include "base/json.h"
#include "base/system_error.h"
#include "cadre/error.h"

namespace cadre::tune {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFileName = "study.jsonl";
constexpr int kAttempts = 600;
constexpr ::useconds_t kPauseMicroseconds = 100'000;

void lock(int file, const fs::path& path) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) return;
    if (errno != EWOULDBLOCK && errno != EINTR) base::throw_storage_error("lock", path);
    ::usleep(kPauseMicroseconds);
  }
  throw StorageError("another process has had " + path.string() +
                     " open for a minute: let one process at a time use a study, or end that one");
}

}  // namespace

bool StudyFile::exists(const fs::path& directory) { return fs::exists(directory / kFileName); }

StudyFile::StudyFile(const fs::path& directory) : path_(directory / kFileName) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw StorageError("cannot create " + directory.string() + ": " + error.message());
  file_ = base::open_own_file(path_, O_RDWR | O_CREAT | O_APPEND);
  lock(file_.get(), path_);
  base::sync_directory(directory);
}

std::vector<Value> StudyFile::read() {
  const std::string text = base::read_file(path_);
  std::vector<Value> documents;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n', begin)) {
    documents.push_back(base::parse_json(std::string_view(text).substr(begin, end - begin),
                                         fmt::format("line {} of {}", documents.size() + 1, path_.string())));
    begin = end + 1;
  }
  size_ = begin;
  if (begin < text.size() && ::ftruncate(file_.get(), static_cast<::off_t>(begin)) != 0)
    base::throw_storage_error("shorten", path_);
  return documents;
}

void StudyFile::append(const Dict& document) {
  const std::string line = base::to_json(document) + "\n";
  try {
    base::write_all(file_.get(), line, path_);
    if (::fdatasync(file_.get()) != 0) base::throw_storage_error("write", path_);
  } catch (...) {
    // Removes the part of the line that was written; if that fails, the next reader does.
    static_cast<void>(::ftruncate(file_.get(), static_cast<::off_t>(size_)) == 0);
    throw;
  }
  size_ += line.size();
}

}  // namespace cadre::tune
