#include "view/worker_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/file.h"
#include "cadre/error.h"
#include "storage/remote_directory.h"

namespace cadre::view {
namespace fs = std::filesystem;
namespace {

std::uint64_t size_of(const fs::path& path) {
  std::error_code none;
  const std::uintmax_t size = fs::file_size(path, none);
  return none ? 0 : size;
}

// Keeps the text that a terminal would end up with: progress bars return to the beginning of their line.
std::string_view after_carriage_return(std::string_view line) {
  line = line.substr(0, line.find_last_not_of('\r') + 1);
  return line.substr(line.rfind('\r') + 1);
}

}  // namespace

void WorkerOutput::watch(const std::string& name, const fs::path& directory) {
  Worker& worker = workers_[name];
  if (++worker.running > 1) return;
  for (std::size_t i = 0; i < worker.tails.size(); ++i) {
    const fs::path path = directory / (i == 0 ? "stdout" : "stderr");
    worker.tails[i] = {.path = path, .offset = size_of(path)};
  }
}

WorkerOutput::Text WorkerOutput::end(const std::string& name) {
  Text text;
  const auto found = workers_.find(name);
  if (found == workers_.end()) return text;
  append(name, found->second, true, text);
  if (--found->second.running == 0) workers_.erase(found);
  return text;
}

WorkerOutput::Text WorkerOutput::end_all() {
  Text text;
  for (auto& [name, worker] : workers_) append(name, worker, true, text);
  workers_.clear();
  return text;
}

WorkerOutput::Text WorkerOutput::take() {
  Text text;
  for (auto& [name, worker] : workers_) append(name, worker, false, text);
  return text;
}

WorkerOutput::Text WorkerOutput::take(const std::string& name) {
  Text text;
  if (const auto found = workers_.find(name); found != workers_.end()) append(name, found->second, false, text);
  return text;
}

void WorkerOutput::append(const std::string& name, Worker& worker, bool last, Text& text) {
  for (std::size_t i = 0; i < worker.tails.size(); ++i) {
    try {
      append_lines(name, worker.tails[i], read(worker.tails[i]), last, i == 0 ? text.out : text.err);
    } catch (const StorageError&) {
    }
  }
}

// Reads the new part of the file. If it is too large, returns only its end, after a line that says how many bytes are
// left out.
std::string WorkerOutput::read(Tail& tail) {
  const std::uint64_t size = size_of(tail.path);
  if (size < tail.offset) tail.offset = size;  // it was truncated; its new part is unknown
  if (size == tail.offset) return {};
  const auto file = base::ReadableFile::open(storage::readable_file(tail.path), base::ReadableFile::Links::refuse);
  if (!file) return {};
  const bool too_much = size - tail.offset > kMostBytes;
  const std::uint64_t from = too_much ? size - kMostBytes : tail.offset;
  std::string text(static_cast<std::size_t>(size - from), '\0');
  text.resize(file->read(from, std::as_writable_bytes(std::span(text))));
  if (too_much) {
    const std::size_t line_end = std::min(text.find('\n'), text.size() - 1);
    text.replace(0, line_end + 1,
                 fmt::format("{}[cadre: {} bytes are only in {}]\n", tail.line.empty() ? "" : "\n",
                             from + line_end + 1 - tail.offset, tail.path.string()));
  }
  tail.offset = size;
  return text;
}

void WorkerOutput::append_lines(const std::string& name, Tail& tail, const std::string& text, bool last,
                                std::string& lines) {
  tail.line += text;
  std::size_t begin = 0;
  const auto append = [&](std::size_t end) {
    fmt::format_to(std::back_inserter(lines), "({}) {}\n", name,
                   after_carriage_return(std::string_view(tail.line).substr(begin, end - begin)));
    begin = end + 1;
  };
  for (std::size_t end = tail.line.find('\n'); end != std::string::npos; end = tail.line.find('\n', begin)) append(end);
  if (begin < tail.line.size() && (last || tail.line.size() - begin > kMostBytes)) append(tail.line.size());
  tail.line.erase(0, begin);
}

}  // namespace cadre::view
