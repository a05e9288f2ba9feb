// Columns whose values the names of folders say, as Hive writes them: "year=2024/country=de/part-0.parquet".
#pragma once

#include <arrow/compute/expression.h>
#include <arrow/type_fwd.h>

#include <memory>
#include <vector>

#include "data/files.h"
#include "data/plan.h"

namespace cadre::data {

// The partition columns of one file: they have the same value in all of its rows.
class PartitionColumns {
 public:
  PartitionColumns() = default;
  // A value is null where the file's folders do not say it.
  PartitionColumns(arrow::FieldVector fields, arrow::ScalarVector values)
      : fields_(std::move(fields)), values_(std::move(values)) {}

  const arrow::FieldVector& fields() const { return fields_; }
  // What holds for all rows of the file.
  arrow::compute::Expression guarantee() const;
  // Those that a file does not have itself.
  PartitionColumns without(const arrow::Schema& of_file) const;
  // All columns of a dataset that a file does not have itself, in the dataset's types: null where its folders do not
  // say them either.
  PartitionColumns completed(const arrow::Schema& dataset, const arrow::Schema& of_file) const;

  // Behind the columns that are there.
  std::shared_ptr<arrow::Schema> add_to(const arrow::Schema& schema) const;
  // One of them, for so many rows.
  std::shared_ptr<arrow::Array> column(const std::string& name, std::int64_t rows, arrow::MemoryPool* pool) const;

 private:
  arrow::FieldVector fields_;
  arrow::ScalarVector values_;  // as many
};

// Of each of the files. All have the same fields, which are of int32 where that fits all values, else of texts.
std::vector<PartitionColumns> partition_columns(const std::vector<InputFile>& files);

}  // namespace cadre::data
