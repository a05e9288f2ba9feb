// One schema for files whose columns differ, and the values of each file in the types of that schema.
#pragma once

#include <arrow/type_fwd.h>

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace cadre::data {

// The columns of the files that were added, in the order in which they first came. A column has the type that all of
// its files' types can be converted to: Arrow's permissive promotion, as Ray Data uses it, and of a dictionary and
// plain values the plain values.
class UnifiedSchema {
 public:
  // Throws StorageError, with both files, the column and both types, where there is no such type.
  void add(const std::shared_ptr<arrow::Schema>& schema, const std::string& file);
  // Columns of which the names of folders say the values, behind those of the files. The files' own columns win: a
  // folder counts only for files that lack the column.
  void add_folders(const arrow::FieldVector& fields);
  // A column that files lack is nullable.
  std::shared_ptr<arrow::Schema> schema() const;

 private:
  struct Column {
    std::shared_ptr<arrow::Field> field;
    std::shared_ptr<arrow::DataType> own_type;  // in `file`, which changed the field last
    std::string file;
    bool is_everywhere = true;  // in all files
  };

  static void merge(Column& column, const std::shared_ptr<arrow::Field>& field, const std::string& file);
  void append(const std::shared_ptr<arrow::Field>& field, const std::string& file, bool is_everywhere);

  std::vector<Column> columns_;
  std::unordered_map<std::string, std::size_t> places_;  // of columns, by name
  std::shared_ptr<arrow::Schema> last_;                  // that was added; null: none
};

// Values in a type that UnifiedSchema has made of theirs; not copied where it is their own. `doing` begins the error
// for a value that the type does not have.
std::shared_ptr<arrow::Array> convert(const std::shared_ptr<arrow::Array>& values,
                                      const std::shared_ptr<arrow::DataType>& type, arrow::MemoryPool* pool,
                                      const std::string& doing);

// Returns whether values of both types compare with constants alike, so that statistics of one hold for the
// other.
bool have_same_order(const arrow::DataType& a, const arrow::DataType& b);

}  // namespace cadre::data
