#include "tune/program/metrics_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/csv.h"
#include "base/file_descriptor.h"
#include "base/json.h"
#include "base/system_error.h"
#include "cadre/error.h"
#include "loggers/tensorboard_events.h"

namespace cadre::tune {
namespace fs = std::filesystem;
namespace {

// Reads `size` bytes at an offset, or fewer at the end of the file.
std::string read_at(int fd, std::uint64_t offset, std::uint64_t size, const fs::path& path) {
  std::string bytes(size, '\0');
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ::ssize_t count =
        ::pread(fd, bytes.data() + filled, bytes.size() - filled, static_cast<::off_t>(offset + filled));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) base::throw_storage_error("read", path);
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  bytes.resize(filled);
  return bytes;
}

// Returns nothing if there is no such file.
std::optional<std::pair<base::FileDescriptor, std::uint64_t>> open_with_size(const fs::path& path) {
  base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file && (errno == ENOENT || errno == ENOTDIR)) return {};
  if (!file) base::throw_storage_error("open", path);
  struct ::stat info = {};
  if (::fstat(file.get(), &info) != 0) base::throw_storage_error("look at", path);
  if (!S_ISREG(info.st_mode)) throw InvalidArgument(path.string() + " is no regular file");
  return std::pair(std::move(file), static_cast<std::uint64_t>(info.st_size));
}

bool is_event_file(const fs::path& path) { return path.filename().string().find("tfevents") != std::string::npos; }

}  // namespace

// ---- GrowingFile

GrowingFile::GrowingFile(fs::path path, From from) : path_(std::move(path)) {
  if (from == From::beginning) return;
  const auto opened = open_with_size(path_);
  if (!opened) return;
  const auto& [file, size] = *opened;
  const std::uint64_t compared = std::min<std::uint64_t>(size, kMostCompared);
  before_ = read_at(file.get(), size - compared, compared, path_);
  offset_ = size;
}

bool GrowingFile::is_continued(int fd, std::uint64_t size) const {
  return size >= offset_ && read_at(fd, offset_ - before_.size(), before_.size(), path_) == before_;
}

void GrowingFile::remember(std::string_view bytes) {
  before_ += bytes;
  if (before_.size() > kMostCompared) before_.erase(0, before_.size() - kMostCompared);
  offset_ += bytes.size();
}

GrowingFile::Growth GrowingFile::read() {
  const auto opened = open_with_size(path_);
  if (!opened) return {};
  const auto& [file, size] = *opened;
  Growth growth;
  if (!is_continued(file.get(), size)) {
    growth.is_new = true;
    offset_ = 0;
    before_.clear();
  }
  growth.bytes = read_at(file.get(), offset_, size - offset_, path_);
  remember(growth.bytes);
  return growth;
}

// ---- MetricsFile

MetricsFile::Kind MetricsFile::kind_of(const fs::path& path) {
  const std::string extension = path.extension().string();
  if (extension == ".csv") return Kind::csv;
  if (extension == ".jsonl" || extension == ".json" || extension == ".ndjson") return Kind::json_lines;
  if (extension.empty() || is_event_file(path)) return Kind::tensorboard;
  throw InvalidArgument(fmt::format(
      "{} is none of: a table (.csv), JSON lines (.jsonl), TensorBoard's events (a file with \"tfevents\" in its name, "
      "or a directory)",
      path.string()));
}

MetricsFile::MetricsFile(const fs::path& path, FoundMetrics& found) : path_(path), kind_(kind_of(path)), found_(found) {
  find_files(GrowingFile::From::end);
  if (kind_ != Kind::csv) return;
  // A program that continues a table does not write the names again.
  if (const auto opened = open_with_size(path_)) {
    const std::string head = read_at(opened->first.get(), 0, std::min<std::uint64_t>(opened->second, 1u << 20), path_);
    if (!head.empty()) columns_ = base::csv_cells(head.substr(0, base::csv_record_end(head, 0)));
  }
}

void MetricsFile::find_files(GrowingFile::From from) {
  if (kind_ != Kind::tensorboard || is_event_file(path_)) {
    files_.try_emplace(path_, path_, from);
    return;
  }
  std::error_code error;
  for (fs::recursive_directory_iterator entry(path_, error), end; !error && entry != end; entry.increment(error)) {
    if (is_event_file(entry->path())) files_.try_emplace(entry->path(), entry->path(), from);
  }
}

std::vector<Metrics> MetricsFile::read(bool is_complete) {
  find_files(GrowingFile::From::beginning);
  std::vector<Metrics> reports;
  for (auto& [path, followed] : files_) {
    if (kind_ == Kind::tensorboard) {
      read_events(followed, reports);
    } else {
      read_lines(followed, is_complete, reports);
    }
  }
  return reports;
}

void MetricsFile::read_lines(Followed& followed, bool is_complete, std::vector<Metrics>& reports) {
  GrowingFile::Growth growth = followed.file.read();
  if (growth.is_new) {
    followed.unused.clear();
    followed.line = 0;
    columns_.clear();
  }
  followed.unused += growth.bytes;
  std::string_view rest = followed.unused;
  while (!rest.empty()) {
    const std::size_t end = kind_ == Kind::csv ? base::csv_record_end(rest, 0) : std::min(rest.find('\n'), rest.size());
    if (end == rest.size() && !is_complete) break;
    std::string_view row = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (row.ends_with('\r')) row.remove_suffix(1);
    ++followed.line;
    if (!row.empty()) read_row(row, followed.line, reports);
  }
  followed.unused.erase(0, followed.unused.size() - rest.size());
}

void MetricsFile::read_row(std::string_view row, std::uint64_t line, std::vector<Metrics>& reports) {
  const auto refuse = [&](const std::string& why) {
    throw InvalidArgument(fmt::format("{}, line {} of those that were added: {}", path_.string(), line, why));
  };
  if (kind_ == Kind::json_lines) {
    try {
      const Value value = base::parse_json(row, "the line");
      if (!value.is_dict()) refuse("it is no JSON object");
      reports.emplace_back(value.dict());
    } catch (const StorageError& error) {
      refuse(error.what());
    }
    return;
  }
  std::vector<std::string> cells = base::csv_cells(row);
  if (columns_.empty()) {
    columns_ = std::move(cells);
    return;
  }
  if (cells.size() != columns_.size())
    refuse(fmt::format("it has {} cells, and there are {} columns", cells.size(), columns_.size()));
  Metrics metrics;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!cells[i].empty()) metrics.set(columns_[i], number_or_text(cells[i]));
  }
  reports.push_back(std::move(metrics));
}

void MetricsFile::read_events(Followed& followed, std::vector<Metrics>& reports) {
  GrowingFile::Growth growth = followed.file.read();
  if (growth.is_new) followed.unused.clear();
  followed.unused += growth.bytes;
  std::string_view rest = followed.unused;
  for (loggers::tensorboard::Scalar& scalar : loggers::tensorboard::take_scalars(rest)) {
    found_.find(scalar.tag, scalar.value);
    if (std::optional<Metrics> report = found_.end_step()) reports.push_back(*std::move(report));
  }
  followed.unused.erase(0, followed.unused.size() - rest.size());
}

}  // namespace cadre::tune
