#include "tune/study_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

#include "base/directory.h"
#include "base/file.h"
#include "base/json.h"
#include "base/system_error.h"
#include "cadre/error.h"
#include "cadre/stored.h"

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

struct Documents {
  std::vector<Value> documents = {};
  std::size_t end = 0;  // of the last whole line
};

Documents parse_lines(const std::string& text, const fs::path& path) {
  Documents read;
  for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n', read.end)) {
    read.documents.push_back(base::parse_json(std::string_view(text).substr(read.end, end - read.end),
                                              fmt::format("line {} of {}", read.documents.size() + 1, path.string())));
    read.end = end + 1;
  }
  return read;
}

StudyTrial& open_trial(std::vector<StudyTrial>& trials, TrialIndex trial) {
  const bool exists = trial < trials.size();
  if (!exists || trials[trial].end)
    throw NotFound(fmt::format("trial {} is not open: {}", trial, exists ? "it has ended" : "it was never suggested"));
  return trials[trial];
}

}  // namespace

void carry_out(const StudyChange& change, std::vector<StudyTrial>& trials) {
  if (change.add && *change.add != trials.size())
    throw NotFound(fmt::format("trial {} comes after {} trials", *change.add, trials.size()));
  if (change.add) trials.push_back({.config = Config(change.config.value())});
  const std::optional<TrialIndex> told = change.end ? change.end : change.result;
  if (!told) return;
  StudyTrial& trial = open_trial(trials, *told);
  if (change.metrics) trial.results.emplace_back(*change.metrics);
  if (!change.end) return;
  trial.end = change.status.value();
  trial.succeeded = trial.end == TrialStatus::terminated && change.metrics;
}

StudyHeader read_study_header(const Value& line, const fs::path& file) {
  const Value* format = find_entry(Stored(line).dict(), "study");
  if (format == nullptr || *format != Value(StudyHeader::kFormat))
    throw StorageError(file.string() + " is no study, or was written by a newer version of Cadre");
  return from_value<StudyHeader>(line);
}

bool StudyFile::exists(const fs::path& directory) {
  std::error_code unreadable;  // as for a store: there is none in a directory that cannot be looked into
  return fs::exists(directory / kFileName, unreadable);
}

std::vector<Value> StudyFile::read(const fs::path& directory) {
  const fs::path path = directory / kFileName;
  return parse_lines(base::read_file(path), path).documents;
}

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
  Documents read = parse_lines(text, path_);
  size_ = read.end;
  if (size_ < text.size() && ::ftruncate(file_.get(), static_cast<::off_t>(size_)) != 0)
    base::throw_storage_error("shorten", path_);
  return std::move(read.documents);
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
