// A common schema for files whose columns differ, and conversion of each file's values to its types.
#pragma once

#include <arrow/type_fwd.h>

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cadre::data {

// The columns of all added files, in the order of their first appearance. A column's type is one that the types of all
// files can be converted to: Arrow's permissive promotion, as in Ray Data. A dictionary and plain values give plain
// values.
class UnifiedSchema {
 public:
  // `whole` and `advice` are parts of the message of an error: what has the columns, and what to do.
  explicit UnifiedSchema(
      std::string whole = "the files of a dataset",
      std::string advice = "Write one of them again, or read them as two datasets and make their columns alike")
      : whole_(std::move(whole)), advice_(std::move(advice)) {}

  // Throws StorageError, with both files, the column and both types, if there is no such type.
  void add(const std::shared_ptr<arrow::Schema>& schema, const std::string& file);
  // Adds columns whose values come from the names of folders, after those of the files. The files' own columns win: a
  // folder's value is used only for files that lack the column.
  void add_folders(const arrow::FieldVector& fields);
  // Columns that some files lack are nullable.
  std::shared_ptr<arrow::Schema> schema() const;

 private:
  struct Column {
    std::shared_ptr<arrow::Field> field;
    std::shared_ptr<arrow::DataType> own_type;  // in `file`, the last file that changed the field
    std::string file;
    bool is_everywhere = true;  // true if all files have it
  };

  void merge(Column& column, const std::shared_ptr<arrow::Field>& field, const std::string& file) const;
  void append(const std::shared_ptr<arrow::Field>& field, const std::string& file, bool is_everywhere);

  std::string whole_;
  std::string advice_;
  std::vector<Column> columns_;
  std::unordered_map<std::string, std::size_t> places_;  // of columns, by name
  std::shared_ptr<arrow::Schema> last_;                  // last added; null: none
};

// Returns a block with the columns of a schema that UnifiedSchema has made. `doing` begins the error for a value that
// its type cannot represent.
std::shared_ptr<arrow::RecordBatch> convert_block(const std::shared_ptr<arrow::RecordBatch>& block,
                                                  const std::shared_ptr<arrow::Schema>& schema, arrow::MemoryPool* pool,
                                                  const std::string& doing);

// Converts values to the type that UnifiedSchema has chosen; not copied if they have it already. `doing` begins the
// error for a value that the type cannot represent.
std::shared_ptr<arrow::Array> convert(const std::shared_ptr<arrow::Array>& values,
                                      const std::shared_ptr<arrow::DataType>& type, arrow::MemoryPool* pool,
                                      const std::string& doing);

// Returns true if values of both types compare with constants in the same way, so that statistics of one are valid for
// the other.
bool have_same_order(const arrow::DataType& a, const arrow::DataType& b);

}  // namespace cadre::data
