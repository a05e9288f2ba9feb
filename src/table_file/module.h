// Interface of the library that writes tables as Parquet files. It is a separate library, loaded by the program that is
// asked for such a file, so that other programs do not need Arrow.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cadre/value.h"

namespace cadre::table_file {

inline constexpr const char* kModuleFile = "libcadre_table_file.so";
inline constexpr const char* kModuleFunction = "cadre_open_parquet";

enum class ColumnType { boolean, integer, number, text };

struct Column {
  std::string name = {};  // UTF-8
  ColumnType type = ColumnType::text;
};

// The values of some rows, by column. A value is null, or of its column's type; an integer is a number, too.
using Rows = std::vector<List>;

// A file that is being written. It replaces an existing one with close(): without that, or after an error, nothing has
// changed. Throws StorageError.
class Writer {
 public:
  virtual ~Writer() = default;
  virtual void add(const Rows& rows) = 0;
  virtual void close() = 0;
};

// The caller owns the returned object. Throws StorageError.
using OpenParquet = Writer* (*)(const std::filesystem::path& file, const std::vector<Column>& columns);

}  // namespace cadre::table_file
