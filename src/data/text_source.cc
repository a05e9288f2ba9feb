// CSV and JSON files: each is one piece, which is read from its beginning.
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
#include "data/json_depth.h"
#include "data/partition_columns.h"
#include "data/side_by_side.h"
#include "data/source.h"
#include "data/unified_schema.h"

namespace cadre::data {
namespace {

constexpr std::int64_t kSampleBytes = std::int64_t{1} << 20;        // of the first file, for the types of its columns
constexpr std::int64_t kOtherSampleBytes = std::int64_t{64} << 10;  // of each other file
constexpr std::int64_t kMemoryPerByte = 3;                          // bytes in memory per byte of a file, approximate
constexpr std::int64_t kMostBlockBytes = std::int64_t{1} << 30;     // Arrow has 32 bits for the size

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

// The settings for all files of a dataset.
struct TextFormat {
  ReadFiles read;

  // Opens a file with blocks of this size, enlarged if the first lines need more. `columns`: the file's, with the
  // wanted types; null: unknown.
  std::shared_ptr<arrow::RecordBatchReader> open(const InputFile& file, const std::shared_ptr<arrow::Schema>& columns,
                                                 std::int64_t& block_bytes, arrow::MemoryPool* pool) const;
  // Works like check(), and adds the requirements for a file to the message.
  void check(const arrow::Status& status, const std::string& doing) const;

 private:
  using Reader = arrow::Result<std::shared_ptr<arrow::RecordBatchReader>>;

  Reader open_csv(const InputFile& file, const std::shared_ptr<arrow::Schema>& columns, std::int64_t block_bytes,
                  arrow::MemoryPool* pool) const;
  Reader open_json(const InputFile& file, const std::shared_ptr<arrow::Schema>& columns, std::int64_t block_bytes,
                   arrow::MemoryPool* pool) const;
};

TextFormat::Reader TextFormat::open_csv(const InputFile& file, const std::shared_ptr<arrow::Schema>& columns,
                                        std::int64_t block_bytes, arrow::MemoryPool* pool) const {
  auto options = arrow::csv::ReadOptions::Defaults();
  options.use_threads = false;
  options.block_size = static_cast<std::int32_t>(block_bytes);
  options.column_names = read.column_names;
  auto parsing = arrow::csv::ParseOptions::Defaults();
  parsing.delimiter = read.delimiter;
  parsing.newlines_in_values = true;
  auto converting = arrow::csv::ConvertOptions::Defaults();
  converting.strings_can_be_null = true;
  converting.quoted_strings_can_be_null = false;  // "" is a string, and a missing value is null
  if (columns != nullptr) {
    for (const auto& field : columns->fields()) converting.column_types[field->name()] = field->type();
  }
  for (const auto& [column, type] : read.types) converting.column_types[column] = to_type(column, type);
  return arrow::csv::StreamingReader::Make(arrow::io::IOContext(pool), file.open_stream(), options, parsing,
                                           converting);
}

TextFormat::Reader TextFormat::open_json(const InputFile& file, const std::shared_ptr<arrow::Schema>& columns,
                                         std::int64_t block_bytes, arrow::MemoryPool* pool) const {
  auto options = arrow::json::ReadOptions::Defaults();
  options.use_threads = false;
  options.block_size = static_cast<std::int32_t>(block_bytes);
  auto parsing = arrow::json::ParseOptions::Defaults();
  // require_same_columns() finds unexpected columns.
  parsing.unexpected_field_behavior = arrow::json::UnexpectedFieldBehavior::InferType;
  parsing.explicit_schema = columns;
  if (columns == nullptr && !read.types.empty()) {
    arrow::FieldVector fields;
    for (const auto& [column, type] : read.types) fields.push_back(arrow::field(column, to_type(column, type)));
    parsing.explicit_schema = arrow::schema(std::move(fields));
  }
  return arrow::json::StreamingReader::Make(std::make_shared<LimitedDepthStream>(file.open_stream()), options, parsing,
                                            arrow::io::IOContext(pool));
}

// Returns true if a line is too long for the blocks: Arrow can read lines that span two blocks, but not three.
bool is_too_long_for(const arrow::Status& status, std::int64_t block_bytes) {
  return block_bytes < kMostBlockBytes && status.IsInvalid() && status.message().find("straddl") != std::string::npos;
}

std::int64_t larger(std::int64_t block_bytes) { return std::min(4 * block_bytes, kMostBlockBytes); }

std::shared_ptr<arrow::RecordBatchReader> TextFormat::open(const InputFile& file,
                                                           const std::shared_ptr<arrow::Schema>& columns,
                                                           std::int64_t& block_bytes, arrow::MemoryPool* pool) const {
  for (;; block_bytes = larger(block_bytes)) {
    auto reader = read.format == ReadFiles::Format::csv ? open_csv(file, columns, block_bytes, pool)
                                                        : open_json(file, columns, block_bytes, pool);
    if (is_too_long_for(reader.status(), block_bytes)) continue;
    check(reader.status(), "cannot read " + file.shown);
    return *std::move(reader);
  }
}

void TextFormat::check(const arrow::Status& status, const std::string& doing) const {
  if (!status.IsInvalid()) return data::check(status, doing);
  constexpr const char* kTypes =
      "; a column has the type that it looks like in the first megabyte of the first file and the first 64 KiB of the "
      "others, or that the options' `types` says";
  constexpr std::pair<const char*, const char*> kAdvice[] = {
      {"conversion error", kTypes},
      {"Failed to convert", kTypes},
      {"changed from", kTypes},
      {"unexpected field", "; there is an entry that the beginning of the file does not have"},
      {"JSON parse error", "; each line has to be one JSON object"},
  };
  const char* advice = "";
  for (const auto& [symptom, what] : kAdvice) {
    if (*advice == 0 && status.message().find(symptom) != std::string::npos) advice = what;
  }
  data::check(arrow::Status::Invalid(status.message(), advice), doing);
}

// The columns of a dataset and of each of its files.
struct TextColumns {
  std::shared_ptr<arrow::Schema> schema = {};                // of all columns
  std::vector<std::shared_ptr<arrow::Schema>> of_file = {};  // the files' own, in the dataset's types
  std::string first_file = {};                               // for messages
};

class TextFile final : public PieceReader {
 public:
  // `own`: the file's columns, according to the file `said_by`; `constants`: the dataset's other columns; `schema`:
  // the columns of the result.
  TextFile(InputFile file, std::shared_ptr<arrow::Schema> own, std::string said_by, PartitionColumns constants,
           std::shared_ptr<arrow::Schema> schema, std::shared_ptr<const TextFormat> format)
      : file_(std::move(file)),
        own_(std::move(own)),
        said_by_(std::move(said_by)),
        constants_(std::move(constants)),
        schema_(std::move(schema)),
        format_(std::move(format)) {}

  void read(const Piece& piece, const ReadContext& context, const Emit& emit) const override {
    std::int64_t block_bytes = std::clamp<std::int64_t>(context.block_bytes / kMemoryPerByte, 1 << 16, kSampleBytes);
    Piece left = piece;
    while (!read_blocks(left, block_bytes, context, emit)) block_bytes = larger(block_bytes);
  }

 private:
  // Reads the piece, and advances its begin. Returns false if a line is too long for blocks of this size.
  bool read_blocks(Piece& left, std::int64_t& block_bytes, const ReadContext& context, const Emit& emit) const {
    const auto reader = format_->open(file_, own_, block_bytes, context.pool);
    require_same_columns(*own_, said_by_, *reader->schema(), file_.shown);
    std::int64_t at = 0;
    while (!left.end || at < *left.end) {
      Block block;
      const arrow::Status status = reader->ReadNext(&block);
      if (is_too_long_for(status, block_bytes)) return false;
      format_->check(status, fmt::format("cannot read {}, after row {}", file_.shown, at));
      if (block == nullptr) break;
      const auto wanted = wanted_rows(left, block, at);
      if (!wanted) continue;
      left.begin = at;
      emit(to_dataset(*wanted, context.pool));
    }
    return true;
  }

  Block to_dataset(const Block& stored, arrow::MemoryPool* pool) const {
    arrow::ArrayVector arrays;
    for (const auto& field : schema_->fields()) {
      const int index = stored->schema()->GetFieldIndex(field->name());
      arrays.push_back(index >= 0 ? stored->column(index) : constants_.column(field->name(), stored->num_rows(), pool));
    }
    return arrow::RecordBatch::Make(schema_, stored->num_rows(), std::move(arrays));
  }

  InputFile file_;
  std::shared_ptr<arrow::Schema> own_;
  std::string said_by_;
  PartitionColumns constants_;
  std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<const TextFormat> format_;
};

bool is_null_type(const std::shared_ptr<arrow::Field>& field) { return field->type()->id() == arrow::Type::NA; }

// Returns the columns of the first file. If a column has no value there, the next files determine its type.
std::shared_ptr<arrow::Schema> columns_of_first(const std::vector<InputFile>& files, const TextFormat& format) {
  constexpr int kMostFiles = 16;
  arrow::FieldVector fields;
  int looked_at = 0;
  for (const InputFile& file : files) {
    std::int64_t block_bytes = kSampleBytes;
    const auto schema = format.open(file, nullptr, block_bytes, arrow::default_memory_pool())->schema();
    if (looked_at++ == 0) {
      require_different_names(*schema, file.shown);
      fields = schema->fields();
    }
    for (auto& field : fields) {
      const auto other = schema->GetFieldByName(field->name());
      if (is_null_type(field) && other != nullptr) field = other;
    }
    if (looked_at == kMostFiles || std::ranges::none_of(fields, is_null_type)) break;
  }
  return arrow::schema(std::move(fields));
}

// Returns the columns of each file, from its beginning.
std::vector<std::shared_ptr<arrow::Schema>> columns_of_each(const std::vector<InputFile>& files,
                                                            const TextFormat& format) {
  std::vector<std::shared_ptr<arrow::Schema>> schemas(files.size());
  side_by_side(files.size(), [&](std::size_t number) {
    std::int64_t block_bytes = number == 0 ? kSampleBytes : kOtherSampleBytes;
    schemas[number] = format.open(files[number], nullptr, block_bytes, arrow::default_memory_pool())->schema();
    require_different_names(*schemas[number], files[number].shown);
  });
  return schemas;
}

// Makes columns without any value string columns.
std::shared_ptr<arrow::Schema> without_null_types(const arrow::Schema& schema) {
  arrow::FieldVector fields;
  for (const auto& field : schema.fields())
    fields.push_back(is_null_type(field) ? field->WithType(arrow::utf8()) : field);
  return arrow::schema(std::move(fields));
}

TextColumns find_columns(const std::vector<InputFile>& files, const TextFormat& format,
                         const arrow::FieldVector& folders) {
  TextColumns columns{.first_file = files.front().shown};
  UnifiedSchema all;
  if (format.read.unify_schemas) {
    columns.of_file = columns_of_each(files, format);
    for (std::size_t i = 0; i < files.size(); ++i) all.add(columns.of_file[i], files[i].shown);
  } else {
    columns.of_file.assign(files.size(), columns_of_first(files, format));
    all.add(columns.of_file.front(), columns.first_file);
  }
  all.add_folders(folders);
  columns.schema = without_null_types(*all.schema());
  for (auto& own : columns.of_file) {
    arrow::FieldVector fields;
    for (const auto& field : own->fields()) fields.push_back(columns.schema->GetFieldByName(field->name()));
    own = arrow::schema(std::move(fields));
  }
  return columns;
}

}  // namespace

Source open_text(const ReadFiles& read) {
  Source source{.name = read.format == ReadFiles::Format::csv ? "read_csv" : "read_json"};
  const auto format = std::make_shared<TextFormat>(TextFormat{read});
  for (const auto& [column, type] : read.types) to_type(column, type);
  std::vector<InputFile> files = find_files(read.paths, endings_of(read.format));
  std::erase_if(files, [](const InputFile& file) { return file.size == 0; });  // Arrow fails to read them
  if (files.empty()) return source;
  std::vector<PartitionColumns> folders(files.size());
  if (read.hive_partitioning) folders = partition_columns(files);
  const TextColumns columns = find_columns(files, *format, folders.front().fields());
  const Names names = read.columns.value_or(columns.schema->field_names());
  for (const auto& [column, type] : read.types) require_columns(*columns.schema, {column}, columns.first_file);
  require_columns(*columns.schema, names, columns.first_file);
  arrow::FieldVector fields;
  for (const std::string& column : names) fields.push_back(columns.schema->GetFieldByName(column));
  source.schema = arrow::schema(std::move(fields));
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::int64_t bytes = files[i].size * kMemoryPerByte;
    const std::int64_t buffers = kMemoryPerByte * kSampleBytes;
    const std::int64_t overhead_bytes = files[i].is_compressed() ? buffers : std::min(bytes, buffers);
    const auto& own = columns.of_file[i];
    source.pieces.push_back({.reader = std::make_shared<TextFile>(
                                 std::move(files[i]), own, read.unify_schemas ? "its beginning" : columns.first_file,
                                 folders[i].completed(*columns.schema, *own), source.schema, format),
                             .bytes = bytes,
                             .overhead_bytes = overhead_bytes});
  }
  return source;
}

}  // namespace cadre::data
