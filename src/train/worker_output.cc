#include "train/worker_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "cadre/error.h"

namespace cadre::train {
namespace fs = std::filesystem;

void WorkerOutput::begin(const std::vector<fs::path>& directories) {
  tails_.clear();
  for (const fs::path& directory : directories) {
    const Rank rank = std::ssize(tails_) / 2;
    for (const char* name : {"stdout", "stderr"}) {
      const fs::path path = directory / name;
      std::error_code none;
      const std::uintmax_t size = fs::file_size(path, none);
      tails_.push_back({.rank = rank, .path = path, .offset = none ? 0 : size});
    }
  }
}

WorkerOutput::Text WorkerOutput::take(bool last) {
  Text text;
  for (std::size_t i = 0; i < tails_.size(); ++i) {
    try {
      append_lines(tails_[i], read(tails_[i]), last, i % 2 == 0 ? text.out : text.err);
    } catch (const StorageError&) {
    }
  }
  return text;
}

// What is new in the file. Where that is too much: its end, behind a line that says what is left out.
std::string WorkerOutput::read(Tail& tail) {
  if (!tail.file) tail.file = base::ReadableFile::open(tail.path, base::ReadableFile::Links::refuse);
  if (!tail.file) return {};
  const std::uint64_t size = tail.file->size();
  if (size < tail.offset) tail.offset = size;  // it was cut, and what is new in it cannot be told
  const bool too_much = size - tail.offset > kMostBytes;
  const std::uint64_t from = too_much ? size - kMostBytes : tail.offset;
  std::string text(static_cast<std::size_t>(size - from), '\0');
  text.resize(tail.file->read(from, std::as_writable_bytes(std::span(text))));
  if (too_much) {
    const std::size_t line_end = std::min(text.find('\n'), text.size() - 1);
    text.replace(0, line_end + 1,
                 fmt::format("{}[cadre: {} bytes are only in {}]\n", tail.line.empty() ? "" : "\n",
                             from + line_end + 1 - tail.offset, tail.path.string()));
  }
  tail.offset = size;
  return text;
}

void WorkerOutput::append_lines(Tail& tail, const std::string& text, bool last, std::string& lines) {
  tail.line += text;
  std::size_t begin = 0;
  const auto append = [&](std::size_t end) {
    fmt::format_to(std::back_inserter(lines), "(rank {}) {}\n", tail.rank,
                   std::string_view(tail.line).substr(begin, end - begin));
    begin = end + 1;
  };
  for (std::size_t end = tail.line.find('\n'); end != std::string::npos; end = tail.line.find('\n', begin)) append(end);
  if (begin < tail.line.size() && (last || tail.line.size() - begin > kMostBytes)) append(tail.line.size());
  tail.line.erase(0, begin);
}

}  // namespace cadre::train
