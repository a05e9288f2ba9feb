// Files of numpy's (.npy): the rows of an array. Each file is a piece.
#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "cadre/error.h"
#include "data/arrow_status.h"
#include "data/file_columns.h"
#include "data/npy_header.h"
#include "data/side_by_side.h"
#include "data/source.h"
#include "data/tensor_columns.h"

namespace cadre::data {
namespace {

constexpr const char* kData = "data";

// A file's header, or why it cannot be read.
struct NpyFile {
  NpyHeader header = {};
  std::string fault = {};
};

std::shared_ptr<arrow::DataType> row_type(const NpyHeader& header) {
  const auto shape = header.row_shape();
  return shape.empty() ? header.value_type() : tensor_type(header.value_type(), shape);
}

class NpyFiles final : public PieceReader {
 public:
  NpyFiles(FileColumns columns, std::vector<NpyFile> files) : columns_(std::move(columns)), files_(std::move(files)) {}

  void read(const Piece& piece, const ReadContext& context, const Emit& emit) const override;

 private:
  FileColumns columns_;
  std::vector<NpyFile> files_;
};

void NpyFiles::read(const Piece& piece, const ReadContext& context, const Emit& emit) const {
  const auto number = static_cast<std::size_t>(piece.number);
  const auto& [header, fault] = files_[number];
  if (!fault.empty()) {
    if (context.skipped) context.skipped(fault);
    return;
  }
  const InputFile& file = columns_.files()[number];
  const std::string doing = "cannot read " + file.shown;
  const std::int64_t rows_at_a_time =
      std::max<std::int64_t>(context.block_bytes / std::max<std::int64_t>(header.row_bytes(), 1), 1);
  const bool is_wanted = columns_.wants(kData);
  const auto stream = is_wanted ? file.open() : nullptr;
  std::shared_ptr<arrow::Buffer> whole;
  const auto bytes_of_rows = [&](std::int64_t row, std::int64_t rows) {
    const std::int64_t begin = row * header.row_bytes();
    const std::int64_t size = rows * header.row_bytes();
    if (whole != nullptr) return arrow::SliceBuffer(whole, begin, size);
    auto bytes = checked(stream->ReadAt(header.data_begin + begin, size), doing);
    if (bytes->size() < size)
      throw StorageError(fmt::format("{}, row {}: it has become shorter while it was read", doing, row));
    return bytes;
  };
  if (is_wanted && header.is_fortran_order && header.shape.size() > 1)
    whole = to_c_order(header, bytes_of_rows(0, header.rows()), context.pool);
  for (std::int64_t row = piece.begin; row < *piece.end; row += rows_at_a_time) {
    const std::int64_t rows = std::min(rows_at_a_time, *piece.end - row);
    std::shared_ptr<arrow::Array> array;
    if (is_wanted) {
      array = make_npy_values(header, bytes_of_rows(row, rows), rows, context.pool);
      if (const auto shape = header.row_shape(); !shape.empty()) array = make_tensors(array, shape);
    }
    emit(columns_.complete({array}, std::vector<FileRows>{{number, rows}}, context.pool));
  }
}

std::vector<NpyFile> read_headers(const std::vector<InputFile>& files, bool skips_damaged) {
  std::vector<NpyFile> read(files.size());
  side_by_side(files.size(), [&](std::size_t number) {
    const InputFile& file = files[number];
    const auto bytes =
        checked(file.open()->ReadAt(0, std::min(file.size, kMostNpyHeaderBytes)), "cannot read " + file.shown);
    try {
      read[number].header = parse_npy_header(
          {reinterpret_cast<const char*>(bytes->data()), static_cast<std::size_t>(bytes->size())}, file.size);
    } catch (const StorageError& error) {
      read[number].fault = fmt::format("cannot read {}: {}", file.shown, error.what());
      if (!skips_damaged) throw StorageError(read[number].fault);
    }
  });
  return read;
}

// Returns true for archives, whose arrays are columns. Throws InvalidArgument for archives and arrays together.
bool are_archives(const std::vector<InputFile>& files) {
  const auto is_archive = [](const InputFile& file) { return file.path.ends_with(".npz"); };
  const auto archive = std::ranges::find_if(files, is_archive);
  const auto array = std::ranges::find_if_not(files, is_archive);
  if (archive != files.end() && array != files.end())
    throw InvalidArgument(fmt::format(
        "read_numpy: {} is an archive of arrays, and {} an array: read .npz and .npy files as two datasets, for which "
        "`file_extensions` chooses them",
        archive->shown, array->shown));
  return array == files.end();
}

}  // namespace

Source open_npy(const ReadFiles& read) {
  FileColumns columns(read);
  if (are_archives(columns.files())) return open_npz(read);
  Source source{.name = "read_numpy"};
  std::vector<NpyFile> files = read_headers(columns.files(), read.skip_damaged);
  const auto first = std::ranges::find(files, "", &NpyFile::fault);
  const auto type = first == files.end() ? arrow::null() : row_type(first->header);
  for (std::size_t number = 0; number < files.size(); ++number) {
    const auto& [header, fault] = files[number];
    if (!fault.empty() || row_type(header)->Equals(type)) continue;
    throw StorageError(fmt::format(
        "the arrays of a dataset have the same type and rows of the same shape, but {} has {} and {} has {}. Read "
        "them as two datasets",
        columns.files()[static_cast<std::size_t>(first - files.begin())].shown, type->ToString(),
        columns.files()[number].shown, row_type(header)->ToString()));
  }
  columns.set_own({arrow::field(kData, type)});
  source.schema = columns.schema();
  for (std::size_t number = 0; number < files.size(); ++number) {
    const NpyHeader& header = files[number].header;
    const std::int64_t rows = files[number].fault.empty() ? header.rows() : 0;
    const std::int64_t bytes = rows * header.row_bytes();
    source.pieces.push_back({.reader = nullptr,
                             .number = static_cast<std::int64_t>(number),
                             .rows = rows,
                             .bytes = bytes,
                             .overhead_bytes = header.is_fortran_order ? 2 * bytes : 0,
                             .end = rows});
  }
  const auto reader = std::make_shared<NpyFiles>(std::move(columns), std::move(files));
  for (Piece& piece : source.pieces) piece.reader = reader;
  return source;
}

}  // namespace cadre::data
