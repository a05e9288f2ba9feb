// Rows that carry a checksum, because SQLite notices damage of its structure only: a flipped bit in a value would be
// read as if it had been written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/sqlite.h"

namespace cadre::store {

// A table has these columns, separated by commas, the key first; and `checksum` behind them.
struct Table {
  const char* name;
  const char* columns;
};

// XXH3 (64 bits) over a table's name and the values of a row, each with its type and length.
class RowChecksum {
 public:
  void begin(std::string_view table);
  void add(std::int64_t value);
  void add(double value);
  void add(std::string_view text);
  void add_column(const Statement& statement, int column);  // of whatever type it is
  std::int64_t value() const;

 private:
  std::string bytes_;
};

class RowWriter {
 public:
  enum class Mode { add, replace };  // replace: the row with the same key goes

  RowWriter(const Database& database, const Table& table, Mode mode);

  // One value for each column: std::int64_t, double or text.
  template <typename... Values>
  void write(const Values&... values) {
    checksum_.begin(table_);
    int parameter = 0;
    (put(++parameter, values), ...);
    statement_.bind(++parameter, checksum_.value()).run();
  }

 private:
  template <typename T>
  void put(int parameter, T value) {
    checksum_.add(value);
    statement_.bind(parameter, value);
  }
  void put(int parameter, const std::string& text) { put(parameter, std::string_view(text)); }

  std::string_view table_;
  Statement statement_;
  RowChecksum checksum_;
};

// Reads rows of a table. step() throws StorageError for one that is not as it was written.
class RowReader {
 public:
  RowReader(const Database& database, const Table& table, const std::string& clauses = {});

  RowReader& bind(int parameter, std::int64_t value);
  bool step();  // as Statement's
  void reset() { statement_.reset(); }

  std::int64_t integer(int column) const { return statement_.integer(column); }
  double real(int column) const { return statement_.real(column); }
  std::string text(int column) const { return std::string(statement_.text(column)); }

 private:
  const Database& database_;
  std::string_view table_;
  Statement statement_;
  RowChecksum checksum_;
};

}  // namespace cadre::store
