// Columns whose values come from the names of folders, as Hive writes them: "year=2024/country=de/part-0.parquet".
#pragma once

#include <arrow/compute/expression.h>
#include <arrow/type_fwd.h>

#include <memory>
#include <vector>

#include "data/files.h"
#include "data/plan.h"

namespace cadre::data {

// The partition columns of one file, which have the same value in all of its rows.
class PartitionColumns {
 public:
  PartitionColumns() = default;
  // A value is null if the file's folders do not contain it.
  PartitionColumns(arrow::FieldVector fields, arrow::ScalarVector values)
      : fields_(std::move(fields)), values_(std::move(values)) {}

  const arrow::FieldVector& fields() const { return fields_; }
  // Returns a condition that holds for all rows of the file.
  arrow::compute::Expression guarantee() const;
  // Returns the columns that the file itself lacks.
  PartitionColumns without(const arrow::Schema& of_file) const;
  // Returns all columns of the dataset that the file itself lacks, in the dataset's types; null if its folders do not
  // contain them either.
  PartitionColumns completed(const arrow::Schema& dataset, const arrow::Schema& of_file) const;

  // Returns the schema with these columns appended.
  std::shared_ptr<arrow::Schema> add_to(const arrow::Schema& schema) const;
  // Returns a column with this number of rows.
  std::shared_ptr<arrow::Array> column(const std::string& name, std::int64_t rows, arrow::MemoryPool* pool) const;

 private:
  arrow::FieldVector fields_;
  arrow::ScalarVector values_;  // one for each field
};

// Returns the columns of each file. All files have the same fields: int32 if that fits all values, otherwise strings.
std::vector<PartitionColumns> partition_columns(const std::vector<InputFile>& files);
// Returns columns with these names for the folders between the requested path and each file, from the outermost on, as
// texts. Throws InvalidArgument for a file in fewer or more folders.
std::vector<PartitionColumns> partition_columns(const std::vector<InputFile>& files, const Names& names);

}  // namespace cadre::data
