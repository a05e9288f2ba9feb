// Parquet files: each row group is a piece.
#include <arrow/compute/expression.h>
#include <arrow/dataset/file_parquet.h>
#include <arrow/extension_type.h>
#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "data/arrow_status.h"
#include "data/expressions.h"
#include "data/files.h"
#include "data/partition_columns.h"
#include "data/side_by_side.h"
#include "data/source.h"
#include "data/tensor_columns.h"
#include "data/unified_schema.h"

namespace cadre::data {
namespace {

namespace ds = arrow::dataset;

constexpr std::int64_t kPageBytes = std::int64_t{1} << 20;  // usual size in files
constexpr std::int64_t kBufferBytes = std::int64_t{1} << 20;

void add_leaves(const parquet::arrow::SchemaField& field, std::vector<int>& leaves) {
  if (field.is_leaf()) leaves.push_back(field.column_index);
  for (const auto& child : field.children) add_leaves(child, leaves);
}

// Returns the bytes of one value in memory if its type determines them; values of variable size count as 0.
std::int64_t fixed_bytes(const arrow::DataType& type) {
  if (type.id() == arrow::Type::EXTENSION)
    return fixed_bytes(*static_cast<const arrow::ExtensionType&>(type).storage_type());
  if (type.id() == arrow::Type::FIXED_SIZE_LIST) {
    const auto& lists = static_cast<const arrow::FixedSizeListType&>(type);
    return lists.list_size() * fixed_bytes(*lists.value_type());
  }
  return type.bit_width() > 0 ? (type.bit_width() + 7) / 8 : 0;
}

class ParquetFile final : public PieceReader {
 public:
  // Reads its metadata.
  explicit ParquetFile(InputFile file);

  const std::shared_ptr<arrow::Schema>& schema() const { return schema_; }  // of the file itself
  // Must precede add_pieces(): sets the dataset's columns, the values from folder names, and the wanted columns and
  // rows.
  void prepare(const arrow::Schema& dataset, const PartitionColumns& folders, const Names& columns,
               const std::optional<Expression>& filter);
  void add_pieces(const std::shared_ptr<const ParquetFile>& self, std::vector<Piece>& pieces) const;
  void read(const Piece& piece, const ReadContext& context, const Emit& emit) const override;

 private:
  std::unique_ptr<parquet::arrow::FileReader> open(const parquet::ReaderProperties& properties,
                                                   std::int64_t rows_at_a_time, arrow::MemoryPool* pool) const;
  std::int64_t bytes_of_group(int group) const;
  void find_groups(const Expression& filter);
  // Returns the rows in the dataset's types, with the columns of read_schema_.
  Block to_dataset(const Block& stored, arrow::MemoryPool* pool) const;
  std::string name_of(int group) const { return fmt::format("cannot read {}, row group {}", file_.shown, group); }

  InputFile file_;
  std::shared_ptr<parquet::FileMetaData> metadata_;
  std::vector<std::vector<int>> leaves_of_field_;  // by Parquet's column numbers
  std::shared_ptr<arrow::Schema> schema_;
  PartitionColumns constants_;                  // for columns that the file lacks
  std::shared_ptr<arrow::Schema> read_schema_;  // the dataset's types: result columns, then others of the filter
  int columns_ = 0;                             // number of result columns
  std::vector<int> leaves_;                     // the leaves to decode
  std::optional<Expression> filter_;
  std::set<int> empty_groups_;  // cannot contain a matching row
};

ParquetFile::ParquetFile(InputFile file) : file_(std::move(file)) {
  const std::string doing = "cannot read " + file_.shown;
  try {
    parquet::arrow::FileReaderBuilder builder;
    check(builder.Open(file_.open()), doing + ", which is cut short, damaged or no Parquet file: write it again");
    metadata_ = builder.raw_reader()->metadata();
    const auto reader = checked(builder.Build(), doing);
    std::shared_ptr<arrow::Schema> stored;
    check(reader->GetSchema(&stored), doing);
    require_different_names(*stored, file_.shown);
    arrow::FieldVector fields;
    for (const auto& field : stored->fields()) fields.push_back(with_tensor_type(field));
    schema_ = arrow::schema(std::move(fields));
    for (const auto& field : reader->manifest().schema_fields) add_leaves(field, leaves_of_field_.emplace_back());
  } catch (const parquet::ParquetException& error) {
    throw StorageError(doing + ": " + error.what());
  }
}

void ParquetFile::prepare(const arrow::Schema& dataset, const PartitionColumns& folders, const Names& columns,
                          const std::optional<Expression>& filter) {
  constants_ = folders.completed(dataset, *schema_);
  filter_ = filter;
  columns_ = static_cast<int>(columns.size());
  Names all = columns;
  if (filter) {
    for (const std::string& column : columns_of(*filter)) {
      if (std::ranges::find(all, column) == all.end()) all.push_back(column);
    }
  }
  arrow::FieldVector fields;
  for (const std::string& column : all) fields.push_back(dataset.GetFieldByName(column));
  read_schema_ = arrow::schema(std::move(fields));
  for (int i = 0; i < schema_->num_fields(); ++i) {  // Arrow gives the columns in the file's order
    if (read_schema_->GetFieldIndex(schema_->field(i)->name()) < 0) continue;
    const std::vector<int>& leaves = leaves_of_field_[static_cast<std::size_t>(i)];
    leaves_.insert(leaves_.end(), leaves.begin(), leaves.end());
  }
  if (filter) find_groups(*filter);
}

// Finds the row groups that cannot match according to their statistics.
void ParquetFile::find_groups(const Expression& filter) {
  arrow::FieldVector fields;
  for (const std::string& column : columns_of(filter)) {
    const auto wanted = read_schema_->GetFieldByName(column);
    const auto own = schema_->GetFieldByName(column);
    if (own != nullptr && !have_same_order(*own->type(), *wanted->type())) return;
    fields.push_back(own != nullptr ? own : wanted);
  }
  const auto schema = arrow::schema(std::move(fields));
  if (is_met_by_nan(filter, *schema)) return;
  const std::string doing = "cannot read the statistics of " + file_.shown;
  try {
    const auto reader = open(parquet::ReaderProperties(), 1, arrow::default_memory_pool());
    const auto format = std::make_shared<ds::ParquetFileFormat>();
    const auto fragment =
        checked(format->MakeFragment({file_.path, file_.file_system}, constants_.guarantee(), nullptr), doing);
    auto& parquet = static_cast<ds::ParquetFileFragment&>(*fragment);
    check(parquet.EnsureCompleteMetadata(reader.get()), doing);
    const auto kept = parquet.Subset(bind_condition(filter, schema));
    if (!kept.ok()) return;  // reading the rows will report the fault in the condition
    const auto& groups = static_cast<const ds::ParquetFileFragment&>(**kept).row_groups();
    for (int group = 0; group < metadata_->num_row_groups(); ++group) {
      if (std::ranges::find(groups, group) == groups.end()) empty_groups_.insert(group);
    }
  } catch (const parquet::ParquetException& error) {
    throw StorageError(doing + ": " + error.what());
  }
}

std::int64_t ParquetFile::bytes_of_group(int group) const {
  const auto metadata = metadata_->RowGroup(group);
  std::int64_t bytes = 0;
  for (const int leaf : leaves_) bytes += metadata->ColumnChunk(leaf)->total_uncompressed_size();
  std::int64_t row_bytes = 0;
  for (const auto& field : read_schema_->fields()) row_bytes += fixed_bytes(*field->type());
  return std::max(bytes, row_bytes * metadata->num_rows());  // runs of equal values take almost no space in the file
}

void ParquetFile::add_pieces(const std::shared_ptr<const ParquetFile>& self, std::vector<Piece>& pieces) const {
  for (int group = 0; group < metadata_->num_row_groups(); ++group) {
    const std::int64_t rows = metadata_->RowGroup(group)->num_rows();
    if (rows == 0) continue;  // pyarrow writes one into a file without rows
    const std::int64_t bytes = bytes_of_group(group);
    const std::int64_t pages = std::ssize(leaves_) * (kPageBytes + kBufferBytes);
    pieces.push_back({.reader = self,
                      .number = group,
                      .rows = rows,
                      .bytes = bytes,
                      .overhead_bytes = std::min(2 * bytes, pages),
                      .end = rows});
  }
}

std::unique_ptr<parquet::arrow::FileReader> ParquetFile::open(const parquet::ReaderProperties& properties,
                                                              std::int64_t rows_at_a_time,
                                                              arrow::MemoryPool* pool) const {
  const std::string doing = "cannot read " + file_.shown;
  parquet::ArrowReaderProperties arrow_properties(false);  // one thread
  arrow_properties.set_batch_size(rows_at_a_time);
  arrow_properties.set_pre_buffer(file_.is_remote);
  parquet::arrow::FileReaderBuilder builder;
  check(builder.Open(file_.open(), properties, metadata_), doing);
  return checked(builder.memory_pool(pool)->properties(arrow_properties)->Build(), doing);
}

void ParquetFile::read(const Piece& piece, const ReadContext& context, const Emit& emit) const {
  const int group = static_cast<int>(piece.number);
  if (empty_groups_.contains(group)) return;
  const std::int64_t bytes_per_row = piece.bytes / *piece.rows + 1;
  const std::int64_t rows_at_a_time =
      std::max<std::int64_t>(std::min(context.block_bytes / bytes_per_row, *piece.rows), 1);
  parquet::ReaderProperties properties(context.pool);
  if (!file_.is_remote && piece.bytes > context.block_bytes) {
    properties.enable_buffered_stream();
    properties.set_buffer_size(std::min(kBufferBytes, context.block_bytes));
  }
  try {
    const auto reader = open(properties, rows_at_a_time, context.pool);
    const auto batches = checked(reader->GetRecordBatchReader({group}, leaves_), name_of(group));
    std::optional<arrow::compute::Expression> condition;
    if (filter_) condition = bind_condition(*filter_, read_schema_);
    std::vector<int> wanted_columns(static_cast<std::size_t>(columns_));
    std::iota(wanted_columns.begin(), wanted_columns.end(), 0);
    std::int64_t at = 0;
    for (;;) {
      Block block;
      check(batches->ReadNext(&block), name_of(group));
      if (block == nullptr) break;
      const auto wanted = wanted_rows(piece, block, at);
      if (!wanted) continue;
      block = to_dataset(*wanted, context.pool);
      if (condition) block = keep_matching(block, *condition, context.pool);
      if (block->num_rows() > 0) emit(checked(block->SelectColumns(wanted_columns), name_of(group)));
      if (at >= *piece.end) return;
    }
    if (at < *piece.rows)
      throw StorageError(fmt::format("{}: it has {} rows instead of {}", name_of(group), at, *piece.rows));
  } catch (const parquet::ParquetException& error) {
    throw StorageError(fmt::format("{}: {}", name_of(group), error.what()));
  }
}

Block ParquetFile::to_dataset(const Block& stored, arrow::MemoryPool* pool) const {
  arrow::ArrayVector arrays;
  for (const auto& field : read_schema_->fields()) {
    const int index = stored->schema()->GetFieldIndex(field->name());
    if (index < 0) {
      arrays.push_back(constants_.column(field->name(), stored->num_rows(), pool));
      continue;
    }
    const auto& column = stored->column(index);
    if (column->type()->Equals(field->type())) {
      arrays.push_back(column);
      continue;
    }
    const auto& own = schema_->GetFieldByName(field->name())->type();
    const std::string doing = fmt::format("cannot read {}, whose column \"{}\" is of {} and becomes {}", file_.shown,
                                          field->name(), own->ToString(), field->type()->ToString());
    arrays.push_back(convert(to_tensor_type(column, own, pool, doing), field->type(), pool, doing));
  }
  return arrow::RecordBatch::Make(read_schema_, stored->num_rows(), std::move(arrays));
}

// The files of a dataset, and the columns of all of them.
class ParquetFiles {
 public:
  explicit ParquetFiles(const ReadFiles& read)
      : read_(read),
        found_(find_files(read.paths, endings_of(read.format))),
        folders_(found_.size()),
        files_(found_.size()) {
    if (read.hive_partitioning) folders_ = partition_columns(found_);
    files_.front() = std::make_shared<ParquetFile>(found_.front());
    const auto condition = condition_on_folders();
    side_by_side(found_.size(), [&](std::size_t number) { open(number, condition); });
    find_schema();
  }

  Source source() {
    const Names columns = read_.columns.value_or(schema_->field_names());
    side_by_side(found_.size(), [&](std::size_t number) {
      if (files_[number] != nullptr) files_[number]->prepare(*schema_, folders_[number], columns, read_.filter);
    });
    Source source{.name = "read_parquet"};
    for (const auto& file : files_) {
      if (file != nullptr) file->add_pieces(file, source.pieces);
    }
    arrow::FieldVector fields;
    for (const std::string& column : columns) fields.push_back(schema_->GetFieldByName(column));
    source.schema = arrow::schema(std::move(fields));
    return source;
  }

 private:
  // Returns the filter if it can be evaluated with the names of folders alone, before the files are opened.
  std::optional<arrow::compute::Expression> condition_on_folders() {
    const PartitionColumns& folders = folders_.front();
    if (!read_.filter || folders.fields().empty()) return std::nullopt;
    try {
      return bind_condition(*read_.filter,
                            folders.without(*files_.front()->schema()).add_to(*files_.front()->schema()));
    } catch (const InvalidArgument&) {
      return std::nullopt;  // the column is in other files only, or the filter is wrong: checked with the schema
    }
  }
  void open(std::size_t number, const std::optional<arrow::compute::Expression>& condition) {
    if (number > 0 && may_match(number, condition)) files_[number] = std::make_shared<ParquetFile>(found_[number]);
    if (read_.unify_schemas || files_[number] == nullptr) return;
    require_same_columns(*files_.front()->schema(), found_.front().shown, *files_[number]->schema(),
                         found_[number].shown);
  }
  bool may_match(std::size_t number, const std::optional<arrow::compute::Expression>& condition) const {
    if (!condition) return true;
    const auto own = folders_[number].without(*files_.front()->schema());
    const auto left = checked(arrow::compute::SimplifyWithGuarantee(*condition, own.guarantee()),
                              "cannot evaluate a filter for " + found_[number].shown);
    return left.IsSatisfiable();
  }
  void find_schema() {
    UnifiedSchema all;
    for (std::size_t number = 0; number < files_.size(); ++number) {
      if (files_[number] != nullptr) all.add(files_[number]->schema(), found_[number].shown);
    }
    all.add_folders(folders_.front().fields());
    schema_ = all.schema();
    const std::string where = (found_.size() == 1 ? "" : "the dataset whose first file is ") + found_.front().shown;
    if (read_.columns) require_columns(*schema_, *read_.columns, where);
    if (read_.filter) bind_condition(*read_.filter, schema_);
  }

  const ReadFiles& read_;
  std::vector<InputFile> found_;
  std::vector<PartitionColumns> folders_;            // of each file
  std::vector<std::shared_ptr<ParquetFile>> files_;  // null: no row can meet the condition
  std::shared_ptr<arrow::Schema> schema_;            // of all columns
};

}  // namespace

Source open_parquet(const ReadFiles& read) { return ParquetFiles(read).source(); }

}  // namespace cadre::data
