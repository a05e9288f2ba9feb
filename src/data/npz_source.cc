// Archives of arrays of numpy's (.npz): each array is a column. Each archive is a piece.
#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "cadre/error.h"
#include "data/arrow_status.h"
#include "data/file_columns.h"
#include "data/npy_header.h"
#include "data/side_by_side.h"
#include "data/source.h"
#include "data/tensor_columns.h"
#include "data/zip_archive.h"

namespace cadre::data {
namespace {

// An array in an archive.
struct NpzArray {
  ZipEntry entry = {};
  NpyHeader header = {};
  std::shared_ptr<arrow::Field> field = {};
};

// The arrays of an archive, or why it cannot be read.
struct NpzFile {
  std::vector<NpzArray> arrays = {};
  std::string fault = {};

  std::int64_t rows() const { return arrays.empty() ? 0 : arrays.front().header.rows(); }
  arrow::FieldVector fields() const {
    arrow::FieldVector fields;
    for (const NpzArray& array : arrays) fields.push_back(array.field);
    return fields;
  }
};

NpzArray open_array(arrow::io::RandomAccessFile& file, const ZipEntry& entry) {
  constexpr std::string_view kEnding = ".npy";
  std::string name = entry.name;
  if (name.ends_with(kEnding)) name.resize(name.size() - kEnding.size());
  NpzArray array{.entry = entry};
  try {
    array.header = parse_npy_header(read_zip_beginning(file, entry, kMostNpyHeaderBytes), entry.size);
  } catch (const StorageError& error) {
    throw StorageError(fmt::format("its array \"{}\": {}", name, error.what()));
  }
  const auto shape = array.header.row_shape();
  const auto type = array.header.value_type();
  array.field = arrow::field(name, shape.empty() ? type : tensor_type(type, shape));
  return array;
}

std::vector<NpzArray> open_arrays(const InputFile& file) {
  const auto stream = file.open();
  std::vector<NpzArray> arrays;
  for (const ZipEntry& entry : read_zip_entries(*stream, file.size)) arrays.push_back(open_array(*stream, entry));
  if (arrays.empty()) throw StorageError("it has no arrays; write some to it, or leave it out");
  for (const NpzArray& array : arrays) {
    if (array.header.rows() != arrays.front().header.rows())
      throw StorageError(fmt::format(
          "its arrays \"{}\" and \"{}\" have {} and {} rows: the arrays of an archive are columns, and have equally "
          "many; write others to a file of their own",
          arrays.front().field->name(), array.field->name(), arrays.front().header.rows(), array.header.rows()));
    const auto is_same = [&](const NpzArray& other) { return other.field->name() == array.field->name(); };
    if (std::ranges::count_if(arrays, is_same) > 1)
      throw StorageError(fmt::format("it has two arrays \"{}\": rename one", array.field->name()));
  }
  return arrays;
}

class NpzFiles final : public PieceReader {
 public:
  NpzFiles(FileColumns columns, std::vector<NpzFile> files) : columns_(std::move(columns)), files_(std::move(files)) {}

  void read(const Piece& piece, const ReadContext& context, const Emit& emit) const override;

 private:
  FileColumns columns_;
  std::vector<NpzFile> files_;
};

// The rows of an array, in C's order. The header must outlive it.
class NpzRows {
 public:
  NpzRows(const NpyHeader& header, std::shared_ptr<arrow::Buffer> bytes) : header_(header), bytes_(std::move(bytes)) {}

  std::shared_ptr<arrow::Array> values(std::int64_t row, std::int64_t rows, arrow::MemoryPool* pool) const {
    const auto part = arrow::SliceBuffer(bytes_, row * header_.row_bytes(), rows * header_.row_bytes());
    const auto values = make_npy_values(header_, part, rows, pool);
    const auto shape = header_.row_shape();
    return shape.empty() ? values : make_tensors(values, shape);
  }

 private:
  const NpyHeader& header_;
  std::shared_ptr<arrow::Buffer> bytes_;
};

void NpzFiles::read(const Piece& piece, const ReadContext& context, const Emit& emit) const {
  const auto number = static_cast<std::size_t>(piece.number);
  const NpzFile& file = files_[number];
  if (!file.fault.empty()) {
    if (context.skipped) context.skipped(file.fault);
    return;
  }
  const auto stream = columns_.files()[number].open();
  std::vector<std::optional<NpzRows>> arrays;  // without those that are not wanted
  std::int64_t row_bytes = 1;
  for (const NpzArray& array : file.arrays) {
    arrays.emplace_back();
    if (!columns_.wants(array.field->name())) continue;
    try {
      const auto content = read_zip_content(*stream, array.entry, context.pool);
      const std::int64_t bytes = array.header.rows() * array.header.row_bytes();
      arrays.back().emplace(
          array.header,
          to_c_order(array.header, arrow::SliceBuffer(content, array.header.data_begin, bytes), context.pool));
    } catch (const StorageError& error) {
      throw StorageError(fmt::format("cannot read {}: {}", columns_.files()[number].shown, error.what()));
    }
    row_bytes += array.header.row_bytes();
  }
  const std::int64_t rows_at_a_time = std::max<std::int64_t>(context.block_bytes / row_bytes, 1);
  for (std::int64_t row = piece.begin; row < *piece.end; row += rows_at_a_time) {
    const std::int64_t rows = std::min(rows_at_a_time, *piece.end - row);
    arrow::ArrayVector own;
    for (const auto& array : arrays) own.push_back(array ? array->values(row, rows, context.pool) : nullptr);
    emit(columns_.complete(own, std::vector<FileRows>{{number, rows}}, context.pool));
  }
}

std::vector<NpzFile> open_archives(const std::vector<InputFile>& files, bool skips_damaged) {
  std::vector<NpzFile> archives(files.size());
  side_by_side(files.size(), [&](std::size_t number) {
    try {
      archives[number].arrays = open_arrays(files[number]);
    } catch (const StorageError& error) {
      archives[number].fault = fmt::format("cannot read {}: {}", files[number].shown, error.what());
      if (!skips_damaged) throw StorageError(archives[number].fault);
    }
  });
  return archives;
}

}  // namespace

Source open_npz(const ReadFiles& read) {
  FileColumns columns(read);
  Source source{.name = "read_numpy"};
  std::vector<NpzFile> files = open_archives(columns.files(), read.skip_damaged);
  const auto first = std::ranges::find(files, "", &NpzFile::fault);
  const arrow::FieldVector fields = first == files.end() ? arrow::FieldVector() : first->fields();
  const arrow::Schema schema(fields);
  for (std::size_t number = 0; number < files.size(); ++number) {
    const arrow::Schema own(files[number].fields());
    if (!files[number].fault.empty() || own.Equals(schema)) continue;
    throw StorageError(
        fmt::format("the archives of a dataset have the same arrays, but {} has {{{}}} and {} has {{{}}}. Read them as "
                    "two datasets",
                    columns.files()[static_cast<std::size_t>(first - files.begin())].shown, schema.ToString(),
                    columns.files()[number].shown, own.ToString()));
  }
  columns.set_own(fields);
  source.schema = columns.schema();
  for (std::size_t number = 0; number < files.size(); ++number) {
    Piece piece;
    piece.number = static_cast<std::int64_t>(number);
    piece.rows = piece.end = files[number].rows();
    for (const NpzArray& array : files[number].arrays) {
      piece.bytes += array.entry.size;
      piece.overhead_bytes += array.entry.stored_size + (array.header.is_fortran_order ? 2 : 1) * array.entry.size;
    }
    source.pieces.push_back(std::move(piece));
  }
  const auto reader = std::make_shared<NpzFiles>(std::move(columns), std::move(files));
  for (Piece& piece : source.pieces) piece.reader = reader;
  return source;
}

}  // namespace cadre::data
