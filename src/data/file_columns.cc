#include "data/file_columns.h"

#include <arrow/array/concatenate.h>
#include <arrow/array/util.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/type.h>

#include <algorithm>
#include <utility>

#include "data/arrow_status.h"
#include "data/source.h"

namespace cadre::data {
namespace {

constexpr const char* kPath = "path";
constexpr const char* kAdding = "cannot add a column to those of a file";

bool has(const arrow::FieldVector& fields, std::string_view name) {
  return std::ranges::any_of(fields, [&](const auto& field) { return field->name() == name; });
}

}  // namespace

FileColumns::FileColumns(const ReadFiles& read)
    : columns_(read.columns), include_paths_(read.include_paths), files_(find_files(read)), folders_(files_.size()) {
  if (read.hive_partitioning) folders_ = partition_columns(files_);
  if (read.levels) folders_ = partition_columns(files_, *read.levels);
}

void FileColumns::set_own(const arrow::FieldVector& fields) {
  own_ = fields;
  arrow::FieldVector all = fields;
  for (const auto& field : folders_.front().fields()) {
    if (!has(all, field->name())) all.push_back(field);
  }
  if (include_paths_ && !has(all, kPath)) all.push_back(arrow::field(kPath, arrow::utf8()));
  const arrow::Schema schema(all);
  if (columns_) {
    require_columns(schema, *columns_, files_.front().shown);
    all.clear();
    for (const std::string& column : *columns_) all.push_back(schema.GetFieldByName(column));
  }
  schema_ = arrow::schema(std::move(all));
}

bool FileColumns::wants(std::string_view own) const { return schema_->GetFieldIndex(std::string(own)) >= 0; }

std::shared_ptr<arrow::RecordBatch> FileColumns::complete(const arrow::ArrayVector& own, std::span<const FileRows> rows,
                                                          arrow::MemoryPool* pool) const {
  std::int64_t count = 0;
  for (const FileRows& some : rows) count += some.rows;
  arrow::ArrayVector arrays;
  for (const auto& field : schema_->fields()) {
    const auto found = std::ranges::find(own_, field->name(), [](const auto& one) { return one->name(); });
    arrays.push_back(found == own_.end() ? added_column(*field, rows, pool)
                                         : own[static_cast<std::size_t>(found - own_.begin())]);
  }
  return arrow::RecordBatch::Make(schema_, count, std::move(arrays));
}

std::shared_ptr<arrow::Array> FileColumns::added_column(const arrow::Field& field, std::span<const FileRows> rows,
                                                        arrow::MemoryPool* pool) const {
  arrow::ArrayVector parts;
  for (const FileRows& some : rows) {
    const PartitionColumns& folders = folders_[some.file];
    parts.push_back(
        has(folders.fields(), field.name())
            ? folders.column(field.name(), some.rows, pool)
            : checked(arrow::MakeArrayFromScalar(arrow::StringScalar(files_[some.file].shown), some.rows, pool),
                      kAdding));
  }
  if (parts.size() == 1) return parts.front();
  return checked(arrow::Concatenate(parts, pool), kAdding);
}

}  // namespace cadre::data
