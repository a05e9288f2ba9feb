// Text files whose lines are rows: each file is one piece, which is read from its beginning.
#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/builder.h>
#include <arrow/io/interfaces.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "cadre/error.h"
#include "data/arrow_status.h"
#include "data/file_columns.h"
#include "data/source.h"

namespace cadre::data {
namespace {

constexpr const char* kText = "text";
constexpr std::int64_t kMostLineBytes = std::int64_t{1} << 30;
constexpr std::int64_t kChunkBytes = std::int64_t{256} << 10;

// Divides a file into lines, which end with "\n", "\r\n" or "\r".
class Lines {
 public:
  explicit Lines(const InputFile& file) : file_(file), stream_(file.open_stream()) {}

  // Returns the next line, without its end; valid until the next call. Empty at the end of the file.
  std::optional<std::string_view> next();
  std::int64_t number() const { return number_; }  // of the latest line, from 1 on

 private:
  bool read_more();

  const InputFile& file_;
  std::shared_ptr<arrow::io::InputStream> stream_;
  std::string held_ = {};     // read, but not returned from `begin_` on
  std::size_t begin_ = 0;     // of the next line
  std::size_t searched_ = 0;  // no line ends before it
  bool is_over_ = false;
  std::int64_t number_ = 0;
};

bool Lines::read_more() {
  if (is_over_) return false;
  held_.erase(0, begin_);
  searched_ -= begin_;
  begin_ = 0;
  if (std::ssize(held_) > kMostLineBytes)
    throw StorageError(
        fmt::format("cannot read {}, line {}: it has more than 1 GiB; read the file with "
                    "read_binary_files",
                    file_.shown, number_ + 1));
  const auto chunk =
      checked(stream_->Read(kChunkBytes), fmt::format("cannot read {}, after line {}", file_.shown, number_));
  is_over_ = chunk->size() == 0;
  held_.append(reinterpret_cast<const char*>(chunk->data()), static_cast<std::size_t>(chunk->size()));
  return !is_over_;
}

std::optional<std::string_view> Lines::next() {
  std::size_t end = held_.find_first_of("\r\n", searched_);
  // An "\r" at the end of what was read may be the first half of "\r\n".
  while (end == held_.npos || (held_[end] == '\r' && end + 1 == held_.size())) {
    searched_ = end == held_.npos ? held_.size() : end;
    const bool is_over = !read_more();
    end = held_.find_first_of("\r\n", searched_);
    if (is_over) break;
  }
  if (end == held_.npos && begin_ == held_.size()) return std::nullopt;
  ++number_;
  const std::string_view all = held_;
  const std::string_view line = all.substr(begin_, end == held_.npos ? held_.npos : end - begin_);
  begin_ += line.size();
  if (end != held_.npos) begin_ += all.substr(end).starts_with("\r\n") ? 2 : 1;
  searched_ = begin_;
  return line;
}

bool is_white_space(std::string_view line) { return line.find_first_not_of(" \t\v\f\x1c\x1d\x1e\x1f") == line.npos; }

class LineFiles final : public PieceReader {
 public:
  LineFiles(FileColumns columns, bool drops_empty_lines)
      : columns_(std::move(columns)), drops_empty_lines_(drops_empty_lines) {}

  const std::vector<InputFile>& files() const { return columns_.files(); }
  void read(const Piece& piece, const ReadContext& context, const Emit& emit) const override;

 private:
  FileColumns columns_;
  bool drops_empty_lines_;
};

void LineFiles::read(const Piece& piece, const ReadContext& context, const Emit& emit) const {
  const auto number = static_cast<std::size_t>(piece.number);
  const InputFile& file = columns_.files()[number];
  arrow::StringBuilder builder(context.pool);
  std::int64_t rows = 0;  // in the block
  const auto finish_block = [&] {
    if (rows == 0) return;
    const auto array = checked(builder.Finish(), "cannot make a column of texts");
    emit(columns_.complete({array}, std::vector<FileRows>{{number, std::exchange(rows, 0)}}, context.pool));
  };
  Lines lines(file);
  std::int64_t row = 0;
  while (!piece.end || row < *piece.end) {
    const auto line = lines.next();
    if (!line) break;
    if (!base::is_utf8(*line))
      throw StorageError(
          fmt::format("cannot read {}, line {}: it is not UTF-8; convert the file, or read it with "
                      "read_binary_files",
                      file.shown, lines.number()));
    if (drops_empty_lines_ && is_white_space(*line)) continue;
    if (row++ < piece.begin) continue;
    check(builder.Append(*line), "cannot keep a line of " + file.shown);
    ++rows;
    if (builder.value_data_length() + rows * std::int64_t{sizeof(std::int32_t)} >= context.block_bytes) finish_block();
  }
  finish_block();
}

}  // namespace

Source open_lines(const ReadFiles& read) {
  FileColumns columns(read);
  columns.set_own({arrow::field(kText, arrow::utf8())});
  Source source{.name = "read_text", .schema = columns.schema()};
  const auto reader = std::make_shared<LineFiles>(std::move(columns), read.drop_empty_lines);
  for (const InputFile& file : reader->files()) {
    const std::int64_t bytes_per_byte = file.is_compressed() ? 4 : 1;
    source.pieces.push_back({.reader = reader,
                             .number = std::ssize(source.pieces),
                             .bytes = file.size * bytes_per_byte,
                             .overhead_bytes = 2 * kChunkBytes});
  }
  return source;
}

}  // namespace cadre::data
