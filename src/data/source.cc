#include "data/source.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "data/arrow_status.h"
#include "data/compute.h"
#include "data/side_by_side.h"

namespace cadre::data {
namespace {

constexpr std::int64_t kCountingBytes = std::int64_t{1} << 20;

// Reads batches in memory.
class MemoryReader final : public PieceReader {
 public:
  explicit MemoryReader(std::shared_ptr<MemoryRows> rows) : rows_(std::move(rows)) {}

  void read(const Piece& piece, const ReadContext& context, const Emit& emit) const override {
    const Block& block = rows_->blocks()[static_cast<std::size_t>(piece.number)];
    const std::int64_t end = piece.end.value_or(block->num_rows());
    const std::int64_t bytes_per_row = piece.bytes / std::max<std::int64_t>(block->num_rows(), 1) + 1;
    const std::int64_t step = std::max<std::int64_t>(context.block_bytes / bytes_per_row, 1);
    for (std::int64_t row = piece.begin; row < end; row += step) emit(block->Slice(row, std::min(step, end - row)));
  }

 private:
  std::shared_ptr<MemoryRows> rows_;
};

class RangeReader final : public PieceReader {
 public:
  static constexpr std::int64_t kRows = std::int64_t{1} << 16;  // per block, and at least per piece
  static constexpr std::int64_t kMostPieces = std::int64_t{1} << 16;

  RangeReader(std::shared_ptr<arrow::Schema> schema, std::int64_t piece_rows)
      : schema_(std::move(schema)), piece_rows_(piece_rows) {}

  void read(const Piece& piece, const ReadContext& context, const Emit& emit) const override {
    for (std::int64_t row = piece.begin; row < *piece.end; row += kRows)
      emit(block(piece.number * piece_rows_ + row, std::min(kRows, *piece.end - row), context));
  }

 private:
  Block block(std::int64_t first, std::int64_t count, const ReadContext& context) const {
    std::shared_ptr<arrow::Buffer> buffer =
        checked(arrow::AllocateBuffer(count * static_cast<std::int64_t>(sizeof(std::int64_t)), context.pool),
                "cannot make rows");
    auto* const numbers = reinterpret_cast<std::int64_t*>(buffer->mutable_data());
    std::iota(numbers, numbers + count, first);
    return arrow::RecordBatch::Make(schema_, count, {std::make_shared<arrow::Int64Array>(count, std::move(buffer))});
  }

  std::shared_ptr<arrow::Schema> schema_;
  std::int64_t piece_rows_;
};

}  // namespace

Source open_files(const ReadFiles& read) {
  switch (read.format) {
    case ReadFiles::Format::parquet:
      return open_parquet(read);
    case ReadFiles::Format::csv:
    case ReadFiles::Format::json:
      return open_text(read);
    case ReadFiles::Format::images:
      return open_images(read);
    case ReadFiles::Format::binary_files:
      return open_binary_files(read);
    case ReadFiles::Format::text:
      return open_lines(read);
    case ReadFiles::Format::numpy:
      return open_npy(read);
    case ReadFiles::Format::tf_records:
      return open_tf_records(read);
    case ReadFiles::Format::webdataset:
      break;
  }
  return open_webdataset(read);
}

Source open_memory(const FromMemory& memory) {
  Source source{"from_memory", memory.rows->schema(), {}};
  const auto reader = std::make_shared<MemoryReader>(memory.rows);
  for (const Block& block : memory.rows->blocks()) {
    source.pieces.push_back({.reader = reader,
                             .number = std::ssize(source.pieces),
                             .rows = block->num_rows(),
                             .bytes = bytes_of(block),
                             .end = block->num_rows()});
  }
  return source;
}

Source open_range(const Range& range) {
  Source source{"range", arrow::schema({arrow::field("id", arrow::int64())}), {}};
  const std::int64_t piece_rows = std::max(RangeReader::kRows, range.count / RangeReader::kMostPieces + 1);
  const auto reader = std::make_shared<RangeReader>(source.schema, piece_rows);
  for (std::int64_t left = range.count; left > 0; left -= source.pieces.back().rows.value()) {
    const std::int64_t rows = std::min(piece_rows, left);
    source.pieces.push_back({.reader = reader,
                             .number = std::ssize(source.pieces),
                             .rows = rows,
                             .bytes = rows * static_cast<std::int64_t>(sizeof(std::int64_t)),
                             .end = rows});
  }
  return source;
}

void count_rows(std::vector<Piece>& pieces) {
  side_by_side(pieces.size(), [&](std::size_t number) {
    Piece& piece = pieces[number];
    if (piece.rows) return;
    std::int64_t rows = 0;
    piece.reader->read(piece, {.pool = arrow::default_memory_pool(), .block_bytes = kCountingBytes},
                       [&](const Block& block) { rows += block->num_rows(); });
    piece.rows = piece.end = rows;
  });
}

std::int64_t rows_of(const Piece& piece) { return piece.end.value_or(*piece.rows) - piece.begin; }

std::int64_t rows_of(const std::vector<Piece>& pieces) {
  std::int64_t rows = 0;
  for (const Piece& piece : pieces) rows += rows_of(piece);
  return rows;
}

std::vector<Piece> cut(const std::vector<Piece>& pieces, std::int64_t begin, std::int64_t end) {
  std::vector<Piece> wanted;
  std::int64_t at = 0;  // first row of the piece
  for (const Piece& piece : pieces) {
    const std::int64_t rows = rows_of(piece);
    const std::int64_t from = std::clamp<std::int64_t>(begin - at, 0, rows);
    const std::int64_t to = std::clamp<std::int64_t>(end - at, 0, rows);
    at += rows;
    if (from >= to) continue;
    Piece part = piece;
    part.begin = piece.begin + from;
    part.end = piece.begin + to;
    wanted.push_back(std::move(part));
  }
  return wanted;
}

void require_columns(const arrow::Schema& schema, const Names& names, const std::string& where) {
  for (const std::string& name : names) {
    if (schema.GetFieldIndex(name) < 0)
      throw InvalidArgument(fmt::format("{} has no column \"{}\"; its columns are: {}", where, name,
                                        fmt::join(schema.field_names(), ", ")));
  }
}

void require_different_names(const arrow::Schema& schema, const std::string& file) {
  std::vector<std::string> names = schema.field_names();
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end())
    throw StorageError(fmt::format(
        "{} has two columns \"{}\", and those of a dataset have different names: write it again with others", file,
        *twice));
}

void require_same_columns(const arrow::Schema& first, const std::string& first_file, const arrow::Schema& schema,
                          const std::string& file) {
  const auto refuse = [&](const std::string& difference) {
    throw StorageError(
        fmt::format("the files of a dataset have the same columns, but {}: {}. Read them as two datasets "
                    "and make their columns alike",
                    file, difference));
  };
  for (const auto& field : first.fields()) {
    const auto other = schema.GetFieldByName(field->name());
    if (other == nullptr) refuse(fmt::format("it has no column \"{}\", which {} has", field->name(), first_file));
    if (!other->type()->Equals(field->type()))
      refuse(fmt::format("its column \"{}\" is of {}, and that of {} is of {}", field->name(),
                         other->type()->ToString(), first_file, field->type()->ToString()));
  }
  for (const auto& field : schema.fields()) {
    if (first.GetFieldIndex(field->name()) < 0)
      refuse(fmt::format("it has a column \"{}\", which {} has not", field->name(), first_file));
  }
}

std::optional<Block> wanted_rows(const Piece& piece, const Block& block, std::int64_t& at) {
  const std::int64_t first = std::exchange(at, at + block->num_rows());
  const std::int64_t from = std::clamp<std::int64_t>(piece.begin - first, 0, block->num_rows());
  const std::int64_t to =
      piece.end ? std::clamp<std::int64_t>(*piece.end - first, 0, block->num_rows()) : block->num_rows();
  if (from >= to) return std::nullopt;
  return from == 0 && to == block->num_rows() ? block : block->Slice(from, to - from);
}

}  // namespace cadre::data
