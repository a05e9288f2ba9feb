// Parquet files: each row group is a piece.
#include <arrow/compute/expression.h>
#include <arrow/dataset/file_parquet.h>
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
#include <set>
#include <utility>

#include "data/arrow_status.h"
#include "data/expressions.h"
#include "data/files.h"
#include "data/partition_columns.h"
#include "data/side_by_side.h"
#include "data/source.h"

namespace cadre::data {
namespace {

namespace ds = arrow::dataset;

constexpr std::int64_t kPageBytes = std::int64_t{1} << 20;  // as writers make them
constexpr std::int64_t kBufferBytes = std::int64_t{1} << 20;

void add_leaves(const parquet::arrow::SchemaField& field, std::vector<int>& leaves) {
  if (field.is_leaf()) leaves.push_back(field.column_index);
  for (const auto& child : field.children) add_leaves(child, leaves);
}

// Bytes of one value in memory where its type says that; what is longer or shorter by value counts as 0.
std::int64_t fixed_bytes(const arrow::DataType& type) {
  if (type.id() == arrow::Type::FIXED_SIZE_LIST) {
    const auto& lists = static_cast<const arrow::FixedSizeListType&>(type);
    return lists.list_size() * fixed_bytes(*lists.value_type());
  }
  return type.bit_width() > 0 ? (type.bit_width() + 7) / 8 : 0;
}

class ParquetFile final : public PieceReader {
 public:
  ParquetFile(InputFile file, const PartitionColumns& partition, const std::optional<Expression>& filter);

  const std::shared_ptr<arrow::Schema>& schema() const { return schema_; }  // of the file and its folders
  const PartitionColumns& partition() const { return partition_; }          // of its folders
  // Before its pieces: which columns come, in which order.
  void set_columns(const Names& columns);
  void add_pieces(const std::shared_ptr<const ParquetFile>& self, std::vector<Piece>& pieces) const;
  void read(const Piece& piece, const ReadContext& context, const Emit& emit) const override;

 private:
  std::unique_ptr<parquet::arrow::FileReader> open(const parquet::ReaderProperties& properties,
                                                   std::int64_t rows_at_a_time, arrow::MemoryPool* pool) const;
  std::int64_t bytes_of_group(int group) const;
  void find_groups(const Expression& filter, parquet::arrow::FileReader& reader);
  std::string name_of(int group) const { return fmt::format("cannot read {}, row group {}", file_.shown, group); }

  struct TopLevelField {
    std::shared_ptr<arrow::Field> field;
    std::vector<int> leaves;  // as Parquet numbers its columns
  };

  InputFile file_;
  std::shared_ptr<parquet::FileMetaData> metadata_;
  std::vector<TopLevelField> fields_;
  PartitionColumns partition_;
  std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<arrow::Schema> read_schema_;  // of what is decoded, and of what folders say
  std::optional<Expression> filter_;
  std::set<int> empty_groups_;  // in which no row can meet it
  Names filter_columns_;
  Names columns_;
  std::vector<int> leaves_;
};

ParquetFile::ParquetFile(InputFile file, const PartitionColumns& partition, const std::optional<Expression>& filter)
    : file_(std::move(file)) {
  const std::string doing = "cannot read " + file_.shown;
  try {
    parquet::arrow::FileReaderBuilder builder;
    check(builder.Open(file_.open()), doing + ", which is cut short, damaged or no Parquet file: write it again");
    metadata_ = builder.raw_reader()->metadata();
    const auto reader = checked(builder.Build(), doing);
    check(reader->GetSchema(&schema_), doing);
    require_different_names(*schema_, file_.shown);
    for (const auto& field : reader->manifest().schema_fields)
      add_leaves(field, fields_.emplace_back(TopLevelField{field.field, {}}).leaves);
    partition_ = partition.without(*schema_);
    schema_ = partition_.add_to(*schema_);
    if (filter) find_groups(*filter, *reader);
  } catch (const parquet::ParquetException& error) {
    throw StorageError(doing + ": " + error.what());
  }
}

// The row groups whose statistics leave a chance.
void ParquetFile::find_groups(const Expression& filter, parquet::arrow::FileReader& reader) {
  filter_ = filter;
  filter_columns_ = columns_of(filter);
  const auto bound = bind_condition(filter, schema_);
  if (is_met_by_nan(filter, *schema_)) return;
  const std::string doing = "cannot read the statistics of " + file_.shown;
  const auto format = std::make_shared<ds::ParquetFileFormat>();
  const auto fragment =
      checked(format->MakeFragment({file_.path, file_.file_system}, partition_.guarantee(), nullptr), doing);
  auto& parquet = static_cast<ds::ParquetFileFragment&>(*fragment);
  check(parquet.EnsureCompleteMetadata(&reader), doing);
  const auto kept = parquet.Subset(bound);
  if (!kept.ok()) return;  // the rows will say what is wrong with the condition
  const auto& groups = static_cast<const ds::ParquetFileFragment&>(**kept).row_groups();
  for (int group = 0; group < metadata_->num_row_groups(); ++group) {
    if (std::ranges::find(groups, group) == groups.end()) empty_groups_.insert(group);
  }
}

void ParquetFile::set_columns(const Names& columns) {
  columns_ = columns;
  Names all = columns;
  for (const std::string& column : filter_columns_) {
    if (std::ranges::find(all, column) == all.end()) all.push_back(column);
  }
  arrow::FieldVector fields;
  for (const TopLevelField& one : fields_) {
    if (std::ranges::find(all, one.field->name()) == all.end()) continue;
    leaves_.insert(leaves_.end(), one.leaves.begin(), one.leaves.end());
    fields.push_back(one.field);
  }
  partition_ = partition_.selected(all);
  read_schema_ = partition_.add_to(*arrow::schema(std::move(fields)));
}

std::int64_t ParquetFile::bytes_of_group(int group) const {
  const auto metadata = metadata_->RowGroup(group);
  std::int64_t bytes = 0;
  for (const int leaf : leaves_) bytes += metadata->ColumnChunk(leaf)->total_uncompressed_size();
  std::int64_t row_bytes = 0;
  for (const auto& field : read_schema_->fields()) row_bytes += fixed_bytes(*field->type());
  return std::max(bytes, row_bytes * metadata->num_rows());  // runs of equal values take nothing in the file
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
    std::int64_t at = 0;
    for (;;) {
      Block block;
      check(batches->ReadNext(&block), name_of(group));
      if (block == nullptr) break;
      const auto wanted = wanted_rows(piece, block, at);
      if (!wanted) continue;
      block = partition_.add_to(*wanted, context.pool);
      if (condition) block = keep_matching(block, *condition, context.pool);
      std::vector<int> order;
      for (const std::string& column : columns_) order.push_back(block->schema()->GetFieldIndex(column));
      if (block->num_rows() > 0) emit(checked(block->SelectColumns(order), name_of(group)));
      if (at >= *piece.end) return;
    }
    if (at < *piece.rows)
      throw StorageError(fmt::format("{}: it has {} rows instead of {}", name_of(group), at, *piece.rows));
  } catch (const parquet::ParquetException& error) {
    throw StorageError(fmt::format("{}: {}", name_of(group), error.what()));
  }
}

// The files of a dataset: the first one says which columns there are.
class ParquetFiles {
 public:
  explicit ParquetFiles(const ReadFiles& read)
      : read_(read), found_(find_files(read.paths, endings_of(read.format))), partitions_(found_.size()) {
    if (read.hive_partitioning) partitions_ = partition_columns(found_);
    first_ = std::make_shared<ParquetFile>(found_.front(), partitions_.front(), read_.filter);
    Names own;  // of folders, and not of files
    for (const auto& field : first_->partition().fields()) own.push_back(field->name());
    for (PartitionColumns& partition : partitions_) partition = partition.selected(own);
    if (read_.columns) require_columns(*first_->schema(), *read_.columns, found_.front().shown);
    columns_ = read_.columns.value_or(first_->schema()->field_names());
    if (read_.filter) condition_ = bind_condition(*read_.filter, first_->schema());
  }

  Source source() {
    std::vector<std::shared_ptr<ParquetFile>> files(found_.size());  // null: no row can meet the condition
    side_by_side(found_.size(), [&](std::size_t number) { files[number] = open(number); });
    Source source{.name = "read_parquet"};
    for (const auto& file : files) {
      if (file != nullptr) file->add_pieces(file, source.pieces);
    }
    arrow::FieldVector fields;
    for (const std::string& column : columns_) fields.push_back(first_->schema()->GetFieldByName(column));
    source.schema = arrow::schema(std::move(fields));
    return source;
  }

 private:
  std::shared_ptr<ParquetFile> open(std::size_t number) {
    if (condition_) {
      const auto left = checked(arrow::compute::SimplifyWithGuarantee(*condition_, partitions_[number].guarantee()),
                                "cannot evaluate a filter for " + found_[number].shown);
      if (!left.IsSatisfiable()) return nullptr;
    }
    auto file = number == 0 ? first_ : std::make_shared<ParquetFile>(found_[number], partitions_[number], read_.filter);
    require_same_columns(*first_->schema(), found_.front().shown, *file->schema(), found_[number].shown);
    file->set_columns(columns_);
    return file;
  }

  const ReadFiles& read_;
  std::vector<InputFile> found_;
  std::vector<PartitionColumns> partitions_;  // of each file
  std::shared_ptr<ParquetFile> first_;
  Names columns_;  // that come
  std::optional<arrow::compute::Expression> condition_;
};

}  // namespace

Source open_parquet(const ReadFiles& read) { return ParquetFiles(read).source(); }

}  // namespace cadre::data
