// Files that are each a row: images, and files of any bytes. A piece has a few of them.
#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/buffer_builder.h>
#include <arrow/builder.h>
#include <arrow/io/interfaces.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "cadre/error.h"
#include "data/arrow_status.h"
#include "data/batch_memory.h"
#include "data/file_columns.h"
#include "data/image_modes.h"
#include "data/picture.h"
#include "data/side_by_side.h"
#include "data/source.h"
#include "data/tensor_columns.h"

namespace cadre::data {
namespace {

constexpr std::size_t kMostFilesOfPiece = 32;
constexpr std::int64_t kBytesOfPiece = std::int64_t{1} << 20;

std::string_view text_of(const arrow::Buffer& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(bytes.size())};
}

std::shared_ptr<arrow::Buffer> content_of(const InputFile& file) {
  return checked(file.open()->Read(file.size), "cannot read " + file.shown);
}

// A column of a block that is made of whole files, one row for each.
class FileColumn {
 public:
  virtual ~FileColumn() = default;
  // Throws StorageError for bytes that are no row of this column; then nothing is added.
  virtual void add(const arrow::Buffer& bytes) = 0;
  virtual bool is_full() const = 0;  // the block has enough rows
  virtual std::shared_ptr<arrow::Array> finish() = 0;
};

class BytesColumn final : public FileColumn {
 public:
  explicit BytesColumn(const ReadContext& context) : builder_(context.pool), block_bytes_(context.block_bytes) {}

  void add(const arrow::Buffer& bytes) override {
    if (bytes.size() > arrow::BinaryBuilder::memory_limit())
      throw StorageError(fmt::format("it has {} bytes, and a row at most {}: divide it", bytes.size(),
                                     arrow::BinaryBuilder::memory_limit()));
    check(builder_.Append(text_of(bytes)), "cannot keep it");
  }
  bool is_full() const override { return builder_.value_data_length() >= block_bytes_; }
  std::shared_ptr<arrow::Array> finish() override {
    return checked(builder_.Finish(), "cannot make a column of bytes");
  }

 private:
  arrow::BinaryBuilder builder_;
  std::int64_t block_bytes_;
};

std::int64_t product_of(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies());
}

// The type of a column of images.
struct ImageColumnType {
  DecodeImageOptions options = {};
  std::vector<std::int64_t> shape = {};  // of all images; empty: any shape
  std::size_t dimensions = 0;
  std::shared_ptr<arrow::Field> field = {};
};

// Decodes images where they stay: in the memory of their batch, or of their block.
class ImageColumn final : public FileColumn {
 public:
  // `rows`: the most that are added.
  ImageColumn(const ImageColumnType& type, const ReadContext& context, std::int64_t rows)
      : type_(type), block_bytes_(context.block_bytes), block_(context.pool) {
    if (type.shape.empty()) return;
    const std::int64_t row_bytes = product_of(type.shape);
    std::int64_t most_rows = std::min(rows, (block_bytes_ + row_bytes - 1) / row_bytes);
    if (context.batch_memory != nullptr && context.batch_memory->fits(row_bytes)) {
      most_rows = std::min(most_rows, context.batch_memory->rows_left(context.first_row));
      place_ = context.batch_memory->place(context.first_row, most_rows, row_bytes);
    }
    most_bytes_ = most_rows * row_bytes;
  }

  void add(const arrow::Buffer& bytes) override {
    const auto decoder = make_picture_decoder(text_of(bytes));
    const std::vector<std::int64_t> shape = shape_of(decoder->header(), type_.options);
    if (!fits(shape)) {
      decoder->decode();  // a damaged image is reported as one
      refuse(shape);
    }
    const std::int64_t size = product_of(shape);
    decode_into(*decoder, type_.options, {room_for(size), static_cast<std::size_t>(size)});
    bytes_ += size;
    shapes_.push_back(shape);
  }
  bool is_full() const override { return bytes_ >= most_bytes_.value_or(block_bytes_); }
  std::shared_ptr<arrow::Array> finish() override {
    block_.UnsafeAdvance(place_ == nullptr ? bytes_ : 0);
    const auto bytes = place_ == nullptr ? checked(block_.Finish(), "cannot make a column of images")
                                         : arrow::SliceBuffer(place_, 0, bytes_);
    const auto values = std::make_shared<arrow::UInt8Array>(bytes_, bytes);
    return type_.shape.empty() ? make_variable_tensors(*type_.field, values, shapes_)
                               : make_tensors(values, type_.shape);
  }

 private:
  bool fits(const std::vector<std::int64_t>& shape) const {
    return type_.shape.empty() ? shape.size() == type_.dimensions : shape == type_.shape;
  }
  // Throws InvalidArgument: the image is all right.
  [[noreturn]] void refuse(const std::vector<std::int64_t>& shape) const {
    if (!type_.shape.empty())
      throw InvalidArgument(
          fmt::format("the image has the shape {}, and others {}: give a `size` and a `mode`, or set "
                      "`equal_shapes` to false",
                      fmt::join(shape, " x "), fmt::join(type_.shape, " x ")));
    throw InvalidArgument(
        fmt::format("the image has the shape {}, and others have {} dimensions: give a `mode`, such as ImageMode::rgb",
                    fmt::join(shape, " x "), type_.dimensions));
  }
  // Returns the place of the next image.
  std::uint8_t* room_for(std::int64_t size) {
    if (place_ != nullptr) return place_->mutable_data() + bytes_;
    check(block_.Reserve(most_bytes_.value_or(bytes_ + size)), "cannot keep an image");
    return block_.mutable_data() + bytes_;
  }

  const ImageColumnType& type_;
  std::int64_t block_bytes_;
  std::optional<std::int64_t> most_bytes_;       // of the block; empty: unknown
  std::shared_ptr<arrow::MutableBuffer> place_;  // in the memory of a batch; null: the block has its own
  arrow::BufferBuilder block_;
  std::int64_t bytes_ = 0;  // added so far
  std::vector<std::vector<std::int64_t>> shapes_;
};

// Makes the column of a block of at most so many rows, the first of which is `context.first_row`.
using MakeColumn = std::function<std::unique_ptr<FileColumn>(const ReadContext& context, std::int64_t rows)>;

class WholeFiles final : public PieceReader {
 public:
  // `column`: the name of the column that `make_column` makes.
  WholeFiles(FileColumns columns, std::string column, MakeColumn make_column, bool skips_damaged)
      : columns_(std::move(columns)),
        column_(std::move(column)),
        make_column_(std::move(make_column)),
        skips_damaged_(skips_damaged) {}

  // `bytes_per_byte`: of the rows in memory, per byte of the files; `row_bytes`: those of each row, if they are known.
  std::vector<Piece> make_pieces(const std::shared_ptr<WholeFiles>& self, double bytes_per_byte,
                                 std::optional<std::int64_t> row_bytes);

  void read(const Piece& piece, const ReadContext& context, const Emit& emit) const override;

 private:
  class Rows;
  // Adds the row of a file. Returns false if the file is damaged and left out.
  bool add(std::size_t file, const ReadContext& context, FileColumn& column) const;

  FileColumns columns_;
  std::string column_;
  MakeColumn make_column_;
  bool skips_damaged_;
  std::vector<std::size_t> begins_;  // the first file of each piece, and the number of files
};

std::vector<Piece> WholeFiles::make_pieces(const std::shared_ptr<WholeFiles>& self, double bytes_per_byte,
                                           std::optional<std::int64_t> row_bytes) {
  const std::vector<InputFile>& files = columns_.files();
  std::vector<Piece> pieces;
  for (std::size_t file = 0; file < files.size();) {
    Piece piece{.reader = self, .number = std::ssize(begins_)};
    begins_.push_back(file);
    // A large file is a piece of its own: with others before it, its bytes might not fit into a column.
    const auto is_next = [&] {
      return file == begins_.back() || (file - begins_.back() < kMostFilesOfPiece && piece.bytes < kBytesOfPiece &&
                                        files[file].size < kBytesOfPiece);
    };
    while (file < files.size() && is_next()) {
      const std::int64_t size = files[file++].size;
      const auto bytes = static_cast<std::int64_t>(static_cast<double>(size) * bytes_per_byte);
      piece.bytes += row_bytes.value_or(bytes);
      piece.overhead_bytes = std::max(piece.overhead_bytes, size + bytes);
    }
    if (!skips_damaged_) piece.rows = piece.end = static_cast<std::int64_t>(file - begins_.back());
    pieces.push_back(std::move(piece));
  }
  begins_.push_back(files.size());
  return pieces;
}

// Rows that are collected to a block.
class WholeFiles::Rows {
 public:
  // `rows`: the most that are added.
  Rows(const WholeFiles& reader, const ReadContext& context, std::int64_t rows, const Emit& emit)
      : reader_(reader), context_(context), rows_left_(rows), emit_(emit) {}

  FileColumn& column() {
    if (column_ == nullptr) column_ = reader_.make_column_(context_, rows_left_);
    return *column_;
  }
  void add_file(std::size_t file) {
    files_.push_back({file, 1});
    if (column_ != nullptr && column_->is_full()) finish_block();
  }
  void finish_block() {
    if (files_.empty()) return;
    context_.first_row += std::ssize(files_);
    rows_left_ -= std::ssize(files_);
    const auto array = column_ != nullptr ? column_->finish() : nullptr;
    column_.reset();
    emit_(reader_.columns_.complete({array}, std::exchange(files_, {}), context_.pool));
  }

 private:
  const WholeFiles& reader_;
  ReadContext context_;
  std::int64_t rows_left_;
  const Emit& emit_;
  std::unique_ptr<FileColumn> column_;  // null: it is not wanted, or nothing was added
  std::vector<FileRows> files_;
};

void WholeFiles::read(const Piece& piece, const ReadContext& context, const Emit& emit) const {
  const std::size_t first = begins_[static_cast<std::size_t>(piece.number)];
  const std::size_t last = begins_[static_cast<std::size_t>(piece.number) + 1];
  const bool is_wanted = columns_.wants(column_);
  const ReadContext only_to_try{.pool = context.pool, .block_bytes = context.block_bytes};
  Rows rows(*this, context, piece.end.value_or(static_cast<std::int64_t>(last - first)) - piece.begin, emit);
  std::int64_t row = 0;
  for (std::size_t file = first; file < last && (!piece.end || row < *piece.end); ++file) {
    const bool is_in_range = row >= piece.begin;
    if (skips_damaged_ && !(is_wanted && is_in_range)) {  // decoded to find out if it is a row
      if (!add(file, context, *make_column_(only_to_try, 1))) continue;
    } else if (is_wanted && is_in_range) {
      if (!add(file, context, rows.column())) continue;
    }
    ++row;
    if (is_in_range) rows.add_file(file);
  }
  rows.finish_block();
}

bool WholeFiles::add(std::size_t number, const ReadContext& context, FileColumn& column) const {
  const InputFile& file = columns_.files()[number];
  const auto bytes = content_of(file);
  const auto message = [&](const Error& error) {
    return fmt::format("cannot read {}, row {}: {}", file.shown, number, error.what());
  };
  try {
    column.add(*bytes);
  } catch (const StorageError& error) {
    if (!skips_damaged_) throw StorageError(message(error) + kHowToSkip);
    if (context.skipped) context.skipped(message(error));
    return false;
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(message(error));
  }
  return true;
}

// ---- Images

// The headers of some images, for what the read does not say.
struct ImageSample {
  std::vector<std::vector<std::int64_t>> shapes = {};  // after the conversion
  double bytes_per_byte = 10;                          // of the shapes, per byte of their files
};

ImageSample look_at_some(const std::vector<InputFile>& files, const DecodeImageOptions& options) {
  constexpr std::size_t kMost = 64;
  const std::size_t count = std::min(files.size(), kMost);
  std::vector<std::vector<std::int64_t>> shapes(count);
  side_by_side(count, [&](std::size_t number) {
    const InputFile& file = files[number * files.size() / count];
    // Arrow's pool takes megabytes for each thread that allocates.
    std::string bytes(static_cast<std::size_t>(file.size), '\0');
    bytes.resize(
        static_cast<std::size_t>(checked(file.open()->Read(file.size, bytes.data()), "cannot read " + file.shown)));
    try {
      shapes[number] = shape_of(make_picture_decoder(bytes)->header(), options);
    } catch (const StorageError&) {  // reported when its rows are read, like the next one
    } catch (const InvalidArgument&) {
    }
  });
  ImageSample sample;
  double file_bytes = 0;
  double bytes = 0;
  for (std::size_t number = 0; number < count; ++number) {
    if (shapes[number].empty()) continue;
    double own = 1;
    for (const std::int64_t width : shapes[number]) own *= static_cast<double>(width);
    bytes += own;
    file_bytes += static_cast<double>(files[number * files.size() / count].size);
    sample.shapes.push_back(std::move(shapes[number]));
  }
  if (file_bytes > 0) sample.bytes_per_byte = bytes / file_bytes;
  return sample;
}

ImageColumnType type_of(const ReadFiles& read, const DecodeImageOptions& options, const ImageSample& sample) {
  constexpr const char* kName = "image";
  ImageColumnType type{.options = options, .dimensions = 3};
  const auto known = shape_of(options);
  const bool are_equal = std::ranges::adjacent_find(sample.shapes, std::ranges::not_equal_to()) == sample.shapes.end();
  if (known) {
    type.shape = *known;
  } else if (!sample.shapes.empty()) {
    type.dimensions = sample.shapes.front().size();
    if (are_equal || read.equal_shapes.value_or(false)) type.shape = sample.shapes.front();
  }
  if (!known && !read.equal_shapes.value_or(true)) type.shape.clear();
  if (!type.shape.empty()) type.dimensions = type.shape.size();
  type.field = type.shape.empty() ? variable_tensor_field(kName, arrow::uint8(), type.dimensions)
                                  : arrow::field(kName, tensor_type(arrow::uint8(), type.shape));
  return type;
}

}  // namespace

Source open_images(const ReadFiles& read) {
  FileColumns columns(read);
  const DecodeImageOptions options{.size = {.height = read.image_height, .width = read.image_width},
                                   .mode = read.image_mode};
  const auto known = shape_of(options);
  const ImageSample sample = known ? ImageSample() : look_at_some(columns.files(), options);
  const auto type = std::make_shared<const ImageColumnType>(type_of(read, options, sample));
  columns.set_own({type->field});
  std::optional<std::int64_t> row_bytes;
  if (!type->shape.empty()) row_bytes = product_of(type->shape);
  Source source{.name = "read_images", .schema = columns.schema()};
  const auto reader = std::make_shared<WholeFiles>(
      std::move(columns), type->field->name(),
      [type](const ReadContext& context, std::int64_t rows) {
        return std::make_unique<ImageColumn>(*type, context, rows);
      },
      read.skip_damaged);
  source.pieces = reader->make_pieces(reader, sample.bytes_per_byte, row_bytes);
  return source;
}

Source open_binary_files(const ReadFiles& read) {
  FileColumns columns(read);
  constexpr const char* kName = "bytes";
  columns.set_own({arrow::field(kName, arrow::binary())});
  Source source{.name = "read_binary_files", .schema = columns.schema()};
  const auto reader = std::make_shared<WholeFiles>(
      std::move(columns), kName,
      [](const ReadContext& context, std::int64_t /*rows*/) { return std::make_unique<BytesColumn>(context); }, false);
  source.pieces = reader->make_pieces(reader, 1, {});
  return source;
}

}  // namespace cadre::data
