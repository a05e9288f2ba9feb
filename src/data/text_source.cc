// CSV and JSON files: each is a piece, which is read from its beginning on.
#include <arrow/csv/api.h>
#include <arrow/io/interfaces.h>
#include <arrow/json/api.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <utility>

#include "data/arrow_status.h"
#include "data/files.h"
#include "data/source.h"

namespace cadre::data {
namespace {

constexpr std::int64_t kSampleBytes = std::int64_t{1} << 20;  // whose values say the types of the columns
constexpr std::int64_t kMemoryPerByte = 3;                    // of a text file's, about

const std::map<std::string, std::shared_ptr<arrow::DataType>>& text_types() {
  static const std::map<std::string, std::shared_ptr<arrow::DataType>> types = [] {
    std::map<std::string, std::shared_ptr<arrow::DataType>> by_name;
    for (const auto& type : {arrow::boolean(), arrow::int8(), arrow::int16(), arrow::int32(), arrow::int64(),
                             arrow::uint8(), arrow::uint16(), arrow::uint32(), arrow::uint64(), arrow::float32(),
                             arrow::float64(), arrow::utf8(), arrow::large_utf8(), arrow::binary(), arrow::date32(),
                             arrow::timestamp(arrow::TimeUnit::SECOND), arrow::timestamp(arrow::TimeUnit::MILLI),
                             arrow::timestamp(arrow::TimeUnit::MICRO), arrow::timestamp(arrow::TimeUnit::NANO)})
      by_name[type->ToString()] = type;
    return by_name;
  }();
  return types;
}

std::shared_ptr<arrow::DataType> to_type(const std::string& column, const std::string& name) {
  const auto found = text_types().find(name);
  if (found == text_types().end())
    throw InvalidArgument(fmt::format("column \"{}\": a text file has no values of type \"{}\", but of: {}", column,
                                      name, fmt::join(text_types() | std::views::keys, ", ")));
  return found->second;
}

// What all files of a dataset are read by.
struct TextFormat {
  ReadFiles read;
  std::shared_ptr<arrow::Schema> schema = {};  // of the first file; null: not known yet

  std::shared_ptr<arrow::RecordBatchReader> open(const InputFile& file, std::int64_t block_bytes,
                                                 arrow::MemoryPool* pool) const;

 private:
  arrow::Result<std::shared_ptr<arrow::RecordBatchReader>> open_csv(const InputFile& file, std::int64_t block_bytes,
                                                                    arrow::MemoryPool* pool) const;
  arrow::Result<std::shared_ptr<arrow::RecordBatchReader>> open_json(const InputFile& file, std::int64_t block_bytes,
                                                                     arrow::MemoryPool* pool) const;
};

arrow::Result<std::shared_ptr<arrow::RecordBatchReader>> TextFormat::open_csv(const InputFile& file,
                                                                              std::int64_t block_bytes,
                                                                              arrow::MemoryPool* pool) const {
  auto options = arrow::csv::ReadOptions::Defaults();
  options.use_threads = false;
  options.block_size = static_cast<std::int32_t>(block_bytes);
  options.column_names = read.column_names;
  auto parsing = arrow::csv::ParseOptions::Defaults();
  parsing.delimiter = read.delimiter;
  parsing.newlines_in_values = true;
  auto converting = arrow::csv::ConvertOptions::Defaults();
  converting.strings_can_be_null = true;
  converting.quoted_strings_can_be_null = false;  // "" is a text, and nothing at all is a null
  if (schema != nullptr) {
    for (const auto& field : schema->fields()) converting.column_types[field->name()] = field->type();
  }
  for (const auto& [column, type] : read.types) converting.column_types[column] = to_type(column, type);
  return arrow::csv::StreamingReader::Make(arrow::io::IOContext(pool), file.open(), options, parsing, converting);
}

arrow::Result<std::shared_ptr<arrow::RecordBatchReader>> TextFormat::open_json(const InputFile& file,
                                                                               std::int64_t block_bytes,
                                                                               arrow::MemoryPool* pool) const {
  auto options = arrow::json::ReadOptions::Defaults();
  options.use_threads = false;
  options.block_size = static_cast<std::int32_t>(block_bytes);
  auto parsing = arrow::json::ParseOptions::Defaults();
  if (schema != nullptr) {
    parsing.explicit_schema = schema;
    parsing.unexpected_field_behavior = arrow::json::UnexpectedFieldBehavior::Error;
  }
  return arrow::json::StreamingReader::Make(file.open(), options, parsing, arrow::io::IOContext(pool));
}

std::shared_ptr<arrow::RecordBatchReader> TextFormat::open(const InputFile& file, std::int64_t block_bytes,
                                                           arrow::MemoryPool* pool) const {
  auto reader =
      read.format == ReadFiles::Format::csv ? open_csv(file, block_bytes, pool) : open_json(file, block_bytes, pool);
  return checked(std::move(reader), "cannot read " + file.shown);
}

class TextFile final : public PieceReader {
 public:
  TextFile(InputFile file, std::shared_ptr<const TextFormat> format)
      : file_(std::move(file)), format_(std::move(format)) {}

  void read(const Piece& piece, const ReadContext& context, const Emit& emit) const override {
    const auto reader = format_->open(
        file_, std::clamp<std::int64_t>(context.block_bytes / kMemoryPerByte, 1 << 16, kSampleBytes), context.pool);
    require_same_columns(*format_->schema, "the first file", *reader->schema(), file_.shown);
    std::vector<int> order;
    for (const std::string& column : format_->read.columns.value_or(format_->schema->field_names()))
      order.push_back(reader->schema()->GetFieldIndex(column));
    std::int64_t at = 0;
    while (!piece.end || at < *piece.end) {
      Block block;
      check(reader->ReadNext(&block), fmt::format("cannot read {}, behind row {}", file_.shown, at));
      if (block == nullptr) return;
      const auto wanted = wanted_rows(piece, block, at);
      if (wanted) emit(checked((*wanted)->SelectColumns(order), "cannot read " + file_.shown));
    }
  }

 private:
  InputFile file_;
  std::shared_ptr<const TextFormat> format_;
};

}  // namespace

Source open_text(const ReadFiles& read) {
  Source source{.name = read.format == ReadFiles::Format::csv ? "read_csv" : "read_json"};
  const auto format = std::make_shared<TextFormat>(TextFormat{read});
  for (const auto& [column, type] : read.types) to_type(column, type);
  for (InputFile& file : find_files(read.paths, endings_of(read.format))) {
    if (file.size == 0) continue;  // Arrow reads nothing from it, and says so
    if (format->schema == nullptr) {
      const auto schema = format->open(file, kSampleBytes, arrow::default_memory_pool())->schema();
      if (read.columns) require_columns(*schema, *read.columns, file.shown);
      for (const auto& [column, type] : read.types) require_columns(*schema, {column}, file.shown);
      format->schema = schema;
    }
    const std::int64_t bytes = file.size * kMemoryPerByte;
    const std::int64_t overhead_bytes = std::min(bytes, kMemoryPerByte * kSampleBytes);
    source.pieces.push_back({.reader = std::make_shared<TextFile>(std::move(file), format),
                             .bytes = bytes,
                             .overhead_bytes = overhead_bytes});
  }
  if (format->schema == nullptr) return source;
  arrow::FieldVector fields;
  for (const std::string& column : read.columns.value_or(format->schema->field_names()))
    fields.push_back(format->schema->GetFieldByName(column));
  source.schema = arrow::schema(std::move(fields));
  return source;
}

}  // namespace cadre::data
