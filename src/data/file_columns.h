// The columns of a dataset of files: those of a format, and those that Cadre adds to them.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/files.h"
#include "data/partition_columns.h"
#include "data/plan.h"

namespace cadre::data {

// Ends the error for a file or row that a read may also leave out.
inline constexpr const char* kHowToSkip = "; the option on_error can leave out what is damaged";

// Consecutive rows of a file.
struct FileRows {
  std::size_t file = 0;  // its number among the files
  std::int64_t rows = 0;
};

class FileColumns {
 public:
  // Finds the files of a read, and the columns from the names of their folders.
  explicit FileColumns(const ReadFiles& read);

  const std::vector<InputFile>& files() const { return files_; }
  // Sets the columns that the format makes; then "path" and those of folders follow them, if they were requested.
  // Throws InvalidArgument for a requested column that is none of these.
  void set_own(const arrow::FieldVector& fields);

  // Require set_own().
  const std::shared_ptr<arrow::Schema>& schema() const { return schema_; }  // of the result
  bool wants(std::string_view own) const;                                   // a column of the format
  // Returns a block of the result. `own`: an array for each column of the format, null for one that is not wanted.
  // `rows`: the files that the rows come from, in order.
  std::shared_ptr<arrow::RecordBatch> complete(const arrow::ArrayVector& own, std::span<const FileRows> rows,
                                               arrow::MemoryPool* pool) const;

 private:
  std::shared_ptr<arrow::Array> added_column(const arrow::Field& field, std::span<const FileRows> rows,
                                             arrow::MemoryPool* pool) const;

  std::optional<Names> columns_;  // requested; empty: all
  bool include_paths_;
  std::vector<InputFile> files_;
  std::vector<PartitionColumns> folders_;  // of each file
  arrow::FieldVector own_;
  std::shared_ptr<arrow::Schema> schema_;
};

}  // namespace cadre::data
