// CSV and JSON files: each is one piece, which is read from its beginning.
#include <arrow/csv/api.h>
#include <arrow/io/interfaces.h>
#include <arrow/json/api.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <string_view>
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
constexpr std::int64_t kMostOfABlock = std::int64_t{1} << 30;       // Arrow has 32 bits for the size

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

// Settings that depend on the content of a file.
struct Effort {
  std::int64_t block_bytes = 0;  // size of blocks
  // For CSV: columns whose missing values have other spellings are read by readers of their own.
  bool reads_apart = false;
};

// Returns true if a line is too long for the blocks: Arrow can read lines that span two blocks, but not three.
bool is_too_long_for(const arrow::Status& status, std::int64_t block_bytes) {
  return block_bytes < kMostOfABlock && status.IsInvalid() && status.message().find("straddl") != std::string::npos;
}

// Increases the effort after an error. Returns false if that does not help.
bool increase(Effort& effort, const arrow::Status& status) {
  if (is_too_long_for(status, effort.block_bytes)) {
    effort.block_bytes = std::min(4 * effort.block_bytes, kMostOfABlock);
    return true;
  }
  const bool is_unknown = status.IsInvalid() && status.message().find("conversion error") != std::string::npos;
  return is_unknown && !std::exchange(effort.reads_apart, true);
}

// Returns the spellings of a missing value in CSV columns of a type. In a column of texts "NA" is a text, and in one of
// floating-point numbers "nan" is a number.
Names null_spellings(const arrow::DataType& type) {
  if (arrow::is_base_binary_like(type.id())) return {""};
  Names spellings = arrow::csv::ConvertOptions::Defaults().null_values;
  constexpr std::string_view kNan[] = {"nan", "NaN", "-nan", "-NaN"};
  if (arrow::is_floating(type.id()))
    std::erase_if(spellings, [&](const std::string& one) { return std::ranges::find(kNan, one) != std::end(kNan); });
  return spellings;
}

// Reads a file with several readers, each of which has the values of some columns.
class ReadersSideBySide final : public arrow::RecordBatchReader {
 public:
  // `all` has all columns, and the others have columns in place of its own.
  ReadersSideBySide(std::shared_ptr<arrow::RecordBatchReader> all,
                    std::vector<std::shared_ptr<arrow::RecordBatchReader>> others)
      : all_(std::move(all)), others_(std::move(others)) {
    arrow::FieldVector fields = all_->schema()->fields();
    for (auto& field : fields) {
      for (const auto& other : others_) {
        if (const auto own = other->schema()->GetFieldByName(field->name())) field = own;
      }
    }
    schema_ = arrow::schema(std::move(fields));
  }

  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }

  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* block) override {
    ARROW_RETURN_NOT_OK(all_->ReadNext(block));
    std::vector<Block> blocks;
    for (const auto& other : others_) {
      ARROW_RETURN_NOT_OK(other->ReadNext(&blocks.emplace_back()));
      // The same lines make the same blocks.
      const std::int64_t rows = blocks.back() != nullptr ? blocks.back()->num_rows() : 0;
      if (rows != (*block != nullptr ? (*block)->num_rows() : 0))
        return arrow::Status::IOError("the file has changed while it was read");
    }
    if (*block == nullptr) return arrow::Status::OK();
    arrow::ArrayVector arrays = (*block)->columns();
    for (int i = 0; i < schema_->num_fields(); ++i) {
      for (const Block& other : blocks) {
        if (const auto own = other->GetColumnByName(schema_->field(i)->name()))
          arrays[static_cast<std::size_t>(i)] = own;
      }
    }
    *block = arrow::RecordBatch::Make(schema_, (*block)->num_rows(), std::move(arrays));
    return arrow::Status::OK();
  }

 private:
  std::shared_ptr<arrow::RecordBatchReader> all_;
  std::vector<std::shared_ptr<arrow::RecordBatchReader>> others_;
  std::shared_ptr<arrow::Schema> schema_;
};

// The settings for all files of a dataset.
struct TextFormat {
  ReadFiles read;

  // Opens a file, with more effort if the first lines need it. `columns`: the file's, with the wanted types; null:
  // unknown, and those of `read.types` may be of another type.
  std::shared_ptr<arrow::RecordBatchReader> open(const InputFile& file, const std::shared_ptr<arrow::Schema>& columns,
                                                 Effort& effort, arrow::MemoryPool* pool) const;
  // Returns the columns of a file, from its beginning.
  std::shared_ptr<arrow::Schema> columns_of(const InputFile& file, std::int64_t sample_bytes) const;
  // Works like check(), and adds the requirements for a file to the message.
  void check(const arrow::Status& status, const std::string& doing) const;

 private:
  using Reader = arrow::Result<std::shared_ptr<arrow::RecordBatchReader>>;

  Reader open_csv(const InputFile& file, const std::shared_ptr<arrow::Schema>& columns, const Effort& effort,
                  arrow::MemoryPool* pool) const;
  Reader open_json(const InputFile& file, const std::shared_ptr<arrow::Schema>& columns, std::int64_t block_bytes,
                   arrow::MemoryPool* pool) const;
};

TextFormat::Reader TextFormat::open_csv(const InputFile& file, const std::shared_ptr<arrow::Schema>& columns,
                                        const Effort& effort, arrow::MemoryPool* pool) const {
  auto options = arrow::csv::ReadOptions::Defaults();
  options.use_threads = false;
  options.block_size = static_cast<std::int32_t>(effort.block_bytes);
  options.column_names = read.column_names;
  auto parsing = arrow::csv::ParseOptions::Defaults();
  parsing.delimiter = read.delimiter;
  parsing.newlines_in_values = true;
  auto converting = arrow::csv::ConvertOptions::Defaults();
  converting.strings_can_be_null = true;
  converting.quoted_strings_can_be_null = false;  // "" is a string, and a missing value is null
  const auto make = [&]() -> Reader {
    return arrow::csv::StreamingReader::Make(arrow::io::IOContext(pool), file.open_stream(), options, parsing,
                                             converting);
  };
  if (columns == nullptr) {
    // Arrow has one list of spellings for all columns. This one is right for finding the types of all.
    converting.null_values = null_spellings(*arrow::float64());
    for (const auto& [column, type] : read.types) converting.column_types[column] = arrow::binary();  // fits any value
    return make();
  }
  std::map<Names, Names> columns_by_spellings;
  for (const auto& field : columns->fields()) {
    converting.column_types[field->name()] = field->type();
    columns_by_spellings[null_spellings(*field->type())].push_back(field->name());
  }
  const Names of_texts = {""};
  converting.null_values = columns_by_spellings.size() == 1 ? columns_by_spellings.begin()->first : of_texts;
  parsing.ignore_empty_lines = columns->num_fields() != 1;  // a null of a single column is an empty line
  if (columns_by_spellings.size() < 2 || !effort.reads_apart) {
    Reader reader = make();
    if (parsing.ignore_empty_lines || !reader.ok() || (*reader)->schema()->field_names() == columns->field_names())
      return reader;
    parsing.ignore_empty_lines = true;  // lines before the header may be empty
    return make();
  }
  const auto types = converting.column_types;
  for (const auto& [spellings, names] : columns_by_spellings) {
    if (spellings == of_texts) continue;
    for (const std::string& name : names) converting.column_types[name] = arrow::binary();
  }
  Reader all = make();
  if (!all.ok()) return all;
  converting.column_types = types;
  converting.include_missing_columns = true;  // missing in `all`, too
  std::vector<std::shared_ptr<arrow::RecordBatchReader>> others;
  for (const auto& [spellings, names] : columns_by_spellings) {
    if (spellings == of_texts) continue;
    converting.null_values = spellings;
    converting.include_columns = names;
    Reader other = make();
    if (!other.ok()) return other;
    others.push_back(*std::move(other));
  }
  return std::make_shared<ReadersSideBySide>(*std::move(all), std::move(others));
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

std::shared_ptr<arrow::RecordBatchReader> TextFormat::open(const InputFile& file,
                                                           const std::shared_ptr<arrow::Schema>& columns,
                                                           Effort& effort, arrow::MemoryPool* pool) const {
  for (;;) {
    auto reader = read.format == ReadFiles::Format::csv ? open_csv(file, columns, effort, pool)
                                                        : open_json(file, columns, effort.block_bytes, pool);
    if (increase(effort, reader.status())) continue;
    check(reader.status(), "cannot read " + file.shown);
    return *std::move(reader);
  }
}

std::shared_ptr<arrow::Schema> TextFormat::columns_of(const InputFile& file, std::int64_t sample_bytes) const {
  Effort effort{.block_bytes = sample_bytes};
  arrow::FieldVector fields = open(file, nullptr, effort, arrow::default_memory_pool())->schema()->fields();
  for (auto& field : fields) {
    for (const auto& [column, type] : read.types) {
      if (column == field->name()) field = field->WithType(to_type(column, type));
    }
  }
  return arrow::schema(std::move(fields));
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
      {"unexpected field",
       "; there is an entry that the beginning of the file does not have: say the type of its column in the options' "
       "`types`"},
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
    Effort effort{.block_bytes = std::clamp<std::int64_t>(context.block_bytes / kMemoryPerByte, 1 << 16, kSampleBytes)};
    Piece left = piece;
    while (!read_blocks(left, effort, context, emit)) {
    }
  }

 private:
  // Reads the piece, and advances its begin. Returns false if a line needs more effort, which is increased then.
  bool read_blocks(Piece& left, Effort& effort, const ReadContext& context, const Emit& emit) const {
    const auto reader = format_->open(file_, own_, effort, context.pool);
    require_same_columns(*own_, said_by_, *reader->schema(), file_.shown);
    std::int64_t at = 0;
    while (!left.end || at < *left.end) {
      Block block;
      const arrow::Status status = reader->ReadNext(&block);
      if (increase(effort, status)) return false;
      format_->check(status, fmt::format("cannot read {}, after row {}", file_.shown, at));
      if (block == nullptr && left.end)
        throw StorageError(
            fmt::format("{} has changed since its rows were counted: it has {}, and had {} or more. "
                        "Begin anew with the files as they are now",
                        file_.shown, at, *left.end));
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
    const auto schema = format.columns_of(file, kSampleBytes);
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
    schemas[number] = format.columns_of(files[number], number == 0 ? kSampleBytes : kOtherSampleBytes);
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
