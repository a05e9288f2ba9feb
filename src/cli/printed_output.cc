#include "cli/printed_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/file.h"
#include "engine/local/output_limit.h"
#include "storage/remote_directory.h"

namespace cadre::cli {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

std::string read_piece(const base::ReadableFile& file, std::uint64_t offset, std::uint64_t end) {
  std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, end - offset)), '\0');
  text.resize(file.read(offset, std::as_writable_bytes(std::span(text))));
  return text;
}

// Returns the offset at which the last lines of the bytes from `begin` to `end` begin.
std::uint64_t begin_of_last_lines(const base::ReadableFile& file, std::uint64_t begin, std::uint64_t end,
                                  std::size_t lines) {
  if (lines == 0) return end;
  for (std::uint64_t piece_end = end; piece_end > begin;) {
    const std::uint64_t piece_begin = piece_end - std::min<std::uint64_t>(kPiece, piece_end - begin);
    const std::string text = read_piece(file, piece_begin, piece_end);
    for (std::size_t i = text.size(); i > 0; --i) {
      const bool ends_the_last = piece_begin + i == end;
      if (text[i - 1] == '\n' && !ends_the_last && --lines == 0) return piece_begin + i;
    }
    piece_end = piece_begin;
  }
  return begin;
}

}  // namespace

void PrintedOutput::show_new(bool last, const Show& show) {
  const auto file = base::ReadableFile::open(storage::readable_file(file_), base::ReadableFile::Links::refuse);
  if (file) {
    const std::uint64_t size = file->size();
    constexpr std::uint64_t header_bytes = engine::local::output_header_bytes;
    const auto dropped = engine::local::dropped_output(read_piece(*file, 0, std::min(size, header_bytes)));
    const std::uint64_t header = dropped ? header_bytes : 0;
    const std::uint64_t first = dropped.value_or(0);  // offset of the file's first byte in all output
    const std::uint64_t end = first + size - header;
    if (!begun_ && last_lines_) {
      position_ = first + begin_of_last_lines(*file, header, size, *last_lines_) - header;
    } else if (position_ < first) {
      if (!line_.empty()) show_text("\n", show);
      show(fmt::format("[cadre: {} bytes of older output were dropped here]", first - position_));
      position_ = first;
    }
    if (position_ > end) position_ = end;  // another process has truncated the file
    while (position_ < end) {
      const std::string text = read_piece(*file, position_ - first + header, size);
      if (text.empty()) break;
      position_ += text.size();
      show_text(text, show);
    }
  }
  begun_ = true;  // what comes later into a file that is empty, or not there yet, is new
  if (last && !line_.empty()) show_text("\n", show);
}

void PrintedOutput::show_text(std::string_view text, const Show& show) {
  while (!text.empty()) {
    const std::size_t end = std::min({text.find('\n'), text.size(), kLongestLine - line_.size()});
    line_ += text.substr(0, end);
    const bool is_whole = end < text.size() && text[end] == '\n';
    text.remove_prefix(end + (is_whole ? 1 : 0));
    if (!is_whole && line_.size() < kLongestLine) return;
    show(line_);
    line_.clear();
  }
}

}  // namespace cadre::cli
