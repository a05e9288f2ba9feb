// Rows with checksums. SQLite notices damage of its structure only: a flipped bit in a value would be read as if it had
// been written.
//
// A row is a struct with a `table` and `fields(row)`, which ties its members in the order of the table's columns
// (tables.h). Members are std::int64_t, bool (as 0 or 1), double and std::string.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "store/sqlite.h"

namespace cadre::store {

struct Table {
  enum class Key { integer, text };

  const char* name;
  const char* columns;  // separated by commas, the key first; `checksum` follows them
  Key key = Key::integer;
};

// Returns the statement that creates a table. Columns other than the key have no type, so that SQLite keeps every value
// as it is given.
std::string creation_of(const Table& table);

// XXH3 (64 bits) over a table's name and the values of a row, each with its type and length.
class RowChecksum {
 public:
  void begin(std::string_view table);
  void add(std::int64_t value);
  void add(double value);
  void add(std::string_view text);
  void add_column(const Statement& statement, int column);  // any type
  std::int64_t value() const;

 private:
  std::string bytes_;
};

enum class WriteMode { add, replace };  // replace: removes the row with the same key

template <class Row>
class RowWriter {
 public:
  RowWriter(const Database& database, WriteMode mode);

  void write(const Row& row) { write(std::get<0>(Row::fields(row)), row); }
  // Writes the row under another key than its own.
  template <class Key>
  void write(const Key& key, const Row& row) {
    checksum_.begin(Row::table.name);
    parameter_ = 0;
    put(key);
    std::apply([this](const auto&, const auto&... values) { (this->put(values), ...); }, Row::fields(row));
    statement_.bind(++parameter_, checksum_.value()).run();
  }

 private:
  template <class T>
  void put(const T& value) {
    if constexpr (std::same_as<T, bool>) return put(std::int64_t{value});
    if constexpr (std::same_as<T, std::string>) return put(std::string_view(value));
    if constexpr (!std::same_as<T, bool> && !std::same_as<T, std::string>) {
      checksum_.add(value);
      statement_.bind(++parameter_, value);
    }
  }

  Statement statement_;
  RowChecksum checksum_;
  int parameter_ = 0;
};

// The part that all readers share: a SELECT, and the comparison of each row with its checksum.
class CheckedStatement {
 public:
  CheckedStatement(const Database& database, const Table& table, const std::string& clauses);

  Statement& statement() { return statement_; }
  // Moves to the next row; returns false after the last one. Throws StorageError at a row whose checksum is wrong.
  bool step();

 private:
  const Database& database_;
  std::string_view table_;
  Statement statement_;
  RowChecksum checksum_;
};

// Reads rows of a table. Throws StorageError at a row whose checksum is wrong.
template <class Row>
class RowReader {
 public:
  explicit RowReader(const Database& database, const std::string& clauses = {})
      : rows_(database, Row::table, clauses) {}

  // Binds a parameter of the clauses, numbered from 1.
  RowReader& bind(int parameter, std::int64_t value) {
    rows_.statement().bind(parameter, value);
    return *this;
  }
  // Returns the next row. After the last one returns nothing and is ready for the next use.
  std::optional<Row> next() {
    if (!rows_.step()) return std::nullopt;
    Row row;
    int column = 0;
    std::apply([&](auto&... values) { (get(column++, values), ...); }, Row::fields(row));
    return row;
  }
  // Returns the first row, then is ready for the next use.
  std::optional<Row> first() {
    std::optional<Row> row = next();
    rows_.statement().reset();
    return row;
  }

 private:
  void get(int column, std::int64_t& value) { value = rows_.statement().integer(column); }
  void get(int column, bool& value) { value = rows_.statement().integer(column) != 0; }
  void get(int column, double& value) { value = rows_.statement().real(column); }
  void get(int column, std::string& value) { value = rows_.statement().text(column); }

  CheckedStatement rows_;
};

std::string insertion_into(const Table& table, WriteMode mode);

template <class Row>
RowWriter<Row>::RowWriter(const Database& database, WriteMode mode)
    : statement_(database, insertion_into(Row::table, mode)) {}

}  // namespace cadre::store
