// CSV and JSON files: each is a piece, which is read from its beginning on.
#include <arrow/csv/api.h>
#include <arrow/io/compressed.h>
#include <arrow/io/interfaces.h>
#include <arrow/json/api.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/util/compression.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <utility>

#include "data/arrow_status.h"
#include "data/files.h"
#include "data/partition_columns.h"
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

arrow::Compression::type compression_of(const InputFile& file) {
  constexpr std::pair<std::string_view, arrow::Compression::type> kEndings[] = {
      {".gz", arrow::Compression::GZIP},
      {".zst", arrow::Compression::ZSTD},
      {".bz2", arrow::Compression::BZ2},
      {".lz4", arrow::Compression::LZ4_FRAME},
  };
  for (const auto& [ending, compression] : kEndings) {
    if (file.path.ends_with(ending)) return compression;
  }
  return arrow::Compression::UNCOMPRESSED;
}

bool is_compressed(const InputFile& file) { return compression_of(file) != arrow::Compression::UNCOMPRESSED; }

// What is in a file, decompressed where its name says that it must be.
std::shared_ptr<arrow::io::InputStream> text_of(const InputFile& file) {
  if (!is_compressed(file)) return file.open();
  const std::string doing = "cannot decompress " + file.shown;
  const std::shared_ptr codec = checked(arrow::util::Codec::Create(compression_of(file)), doing);
  auto stream = checked(arrow::io::CompressedInputStream::Make(codec.get(), file.open()), doing);
  // The stream does not keep its codec.
  return {stream.get(), [codec, stream](const void*) {}};
}

// What all files of a dataset are read by.
struct TextFormat {
  ReadFiles read;
  std::string first_file = {};                 // for people; which has said the columns
  std::shared_ptr<arrow::Schema> schema = {};  // of the files; null: not known yet

  // In blocks of that size, or as large as the first lines need.
  std::shared_ptr<arrow::RecordBatchReader> open(const InputFile& file, std::int64_t& block_bytes,
                                                 arrow::MemoryPool* pool) const;
  // Those that come, of a file with these partition columns.
  Names columns(const PartitionColumns& partition) const {
    return read.columns.value_or(partition.add_to(*schema)->field_names());
  }
  // As check(), and says what a file has to be.
  void check(const arrow::Status& status, const std::string& doing) const;

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
  return arrow::csv::StreamingReader::Make(arrow::io::IOContext(pool), text_of(file), options, parsing, converting);
}

arrow::Result<std::shared_ptr<arrow::RecordBatchReader>> TextFormat::open_json(const InputFile& file,
                                                                               std::int64_t block_bytes,
                                                                               arrow::MemoryPool* pool) const {
  auto options = arrow::json::ReadOptions::Defaults();
  options.use_threads = false;
  options.block_size = static_cast<std::int32_t>(block_bytes);
  auto parsing = arrow::json::ParseOptions::Defaults();
  // Columns that are not expected are found out below, by their names.
  parsing.unexpected_field_behavior = arrow::json::UnexpectedFieldBehavior::InferType;
  parsing.explicit_schema = schema;
  if (schema == nullptr && !read.types.empty()) {
    arrow::FieldVector fields;
    for (const auto& [column, type] : read.types) fields.push_back(arrow::field(column, to_type(column, type)));
    parsing.explicit_schema = arrow::schema(std::move(fields));
  }
  return arrow::json::StreamingReader::Make(text_of(file), options, parsing, arrow::io::IOContext(pool));
}

// Arrow reads lines that lie in two blocks, and none that lies in three.
bool is_too_long_for(const arrow::Status& status, std::int64_t block_bytes) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
  return block_bytes < kMostBytes && status.IsInvalid() && status.message().find("straddl") != std::string::npos;
}

std::shared_ptr<arrow::RecordBatchReader> TextFormat::open(const InputFile& file, std::int64_t& block_bytes,
                                                           arrow::MemoryPool* pool) const {
  for (;; block_bytes *= 4) {
    auto reader =
        read.format == ReadFiles::Format::csv ? open_csv(file, block_bytes, pool) : open_json(file, block_bytes, pool);
    if (is_too_long_for(reader.status(), block_bytes)) continue;
    check(reader.status(), "cannot read " + file.shown);
    return *std::move(reader);
  }
}

void TextFormat::check(const arrow::Status& status, const std::string& doing) const {
  if (!status.IsInvalid()) return data::check(status, doing);
  constexpr const char* kTypes =
      "; a column has the type that it looks like in the first megabyte of the first file, or that the options' "
      "`types` "
      "says";
  constexpr std::pair<const char*, const char*> kAdvice[] = {
      {"conversion error", kTypes},
      {"Failed to convert", kTypes},
      {"changed from", kTypes},
      {"unexpected field", "; there is an entry that the first megabyte of the first file has not"},
      {"JSON parse error", "; each line has to be one JSON object"},
  };
  const char* advice = "";
  for (const auto& [symptom, what] : kAdvice) {
    if (*advice == 0 && status.message().find(symptom) != std::string::npos) advice = what;
  }
  data::check(arrow::Status::Invalid(status.message(), advice), doing);
}

class TextFile final : public PieceReader {
 public:
  TextFile(InputFile file, PartitionColumns partition, std::shared_ptr<const TextFormat> format)
      : file_(std::move(file)), partition_(std::move(partition)), format_(std::move(format)) {}

  void read(const Piece& piece, const ReadContext& context, const Emit& emit) const override {
    std::int64_t block_bytes = std::clamp<std::int64_t>(context.block_bytes / kMemoryPerByte, 1 << 16, kSampleBytes);
    Piece left = piece;
    while (!read_blocks(left, block_bytes, context, emit)) block_bytes *= 4;
  }

 private:
  // Moves the piece's beginning. False where there is a line that is too long for such blocks.
  bool read_blocks(Piece& left, std::int64_t& block_bytes, const ReadContext& context, const Emit& emit) const {
    const auto reader = format_->open(file_, block_bytes, context.pool);
    require_same_columns(*format_->schema, format_->first_file, *reader->schema(), file_.shown);
    const auto schema = partition_.add_to(*reader->schema());
    std::vector<int> order;
    for (const std::string& column : format_->columns(partition_)) order.push_back(schema->GetFieldIndex(column));
    std::int64_t at = 0;
    while (!left.end || at < *left.end) {
      Block block;
      const arrow::Status status = reader->ReadNext(&block);
      if (is_too_long_for(status, block_bytes)) return false;
      format_->check(status, fmt::format("cannot read {}, behind row {}", file_.shown, at));
      if (block == nullptr) break;
      const auto wanted = wanted_rows(left, block, at);
      if (!wanted) continue;
      left.begin = at;
      emit(checked(partition_.add_to(*wanted, context.pool)->SelectColumns(order), "cannot read " + file_.shown));
    }
    return true;
  }

  InputFile file_;
  PartitionColumns partition_;
  std::shared_ptr<const TextFormat> format_;
};

bool is_null_type(const std::shared_ptr<arrow::Field>& field) { return field->type()->id() == arrow::Type::NA; }

// The columns of the first file. One without any value there has the type that the next files say, or texts.
void find_columns(const std::vector<InputFile>& files, TextFormat& format) {
  constexpr int kMostFiles = 16;
  arrow::FieldVector fields;
  int looked_at = 0;
  for (const InputFile& file : files) {
    std::int64_t block_bytes = kSampleBytes;
    const auto schema = format.open(file, block_bytes, arrow::default_memory_pool())->schema();
    if (looked_at++ == 0) {
      require_different_names(*schema, file.shown);
      format.first_file = file.shown;
      fields = schema->fields();
    }
    for (auto& field : fields) {
      const auto other = schema->GetFieldByName(field->name());
      if (is_null_type(field) && other != nullptr) field = other;
    }
    if (looked_at == kMostFiles || std::ranges::none_of(fields, is_null_type)) break;
  }
  for (auto& field : fields) {
    if (is_null_type(field)) field = field->WithType(arrow::utf8());
  }
  if (!files.empty()) format.schema = arrow::schema(std::move(fields));
}

}  // namespace

Source open_text(const ReadFiles& read) {
  Source source{.name = read.format == ReadFiles::Format::csv ? "read_csv" : "read_json"};
  const auto format = std::make_shared<TextFormat>(TextFormat{read});
  for (const auto& [column, type] : read.types) to_type(column, type);
  std::vector<InputFile> files = find_files(read.paths, endings_of(read.format));
  std::erase_if(files, [](const InputFile& file) { return file.size == 0; });  // Arrow reads nothing from them
  if (files.empty()) return source;
  find_columns(files, *format);
  for (const auto& [column, type] : read.types) require_columns(*format->schema, {column}, format->first_file);
  std::vector<PartitionColumns> partitions(files.size());
  if (read.hive_partitioning) partitions = partition_columns(files);
  for (PartitionColumns& partition : partitions) partition = partition.without(*format->schema);
  const auto schema = partitions.front().add_to(*format->schema);
  const Names columns = format->columns(partitions.front());
  require_columns(*schema, columns, format->first_file);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::int64_t bytes = files[i].size * kMemoryPerByte;
    const std::int64_t buffers = kMemoryPerByte * kSampleBytes;
    const std::int64_t overhead_bytes = is_compressed(files[i]) ? buffers : std::min(bytes, buffers);
    source.pieces.push_back({.reader = std::make_shared<TextFile>(std::move(files[i]), partitions[i], format),
                             .bytes = bytes,
                             .overhead_bytes = overhead_bytes});
  }
  arrow::FieldVector fields;
  for (const std::string& column : columns) fields.push_back(schema->GetFieldByName(column));
  source.schema = arrow::schema(std::move(fields));
  return source;
}

}  // namespace cadre::data
