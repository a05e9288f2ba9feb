#include "store/checked_rows.h"

#include <algorithm>

#include "base/checksum.h"
#include "store/damage.h"

namespace cadre::store {
namespace {

template <typename T>
void append_bytes(std::string& bytes, char type, T value) {
  bytes += type;
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string selection(const Table& table, const std::string& clauses) {
  return "SELECT " + std::string(table.columns) + ", checksum FROM " + table.name + " " + clauses;
}

}  // namespace

std::string creation_of(const Table& table) {
  const bool is_text = table.key == Table::Key::text;
  std::string columns = table.columns;
  columns.insert(columns.find(','), is_text ? " TEXT PRIMARY KEY" : " INTEGER PRIMARY KEY");
  return "CREATE TABLE " + std::string(table.name) + "(" + columns + ", checksum)" + (is_text ? " WITHOUT ROWID" : "");
}

std::string insertion_into(const Table& table, WriteMode mode) {
  const std::string columns = table.columns;
  std::string values = "?";
  for (auto left = std::ranges::count(columns, ',') + 1; left > 0; --left) values += ", ?";
  return (mode == WriteMode::replace ? "INSERT OR REPLACE INTO " : "INSERT INTO ") + std::string(table.name) + "(" +
         columns + ", checksum) VALUES(" + values + ")";
}

void RowChecksum::begin(std::string_view table) {
  bytes_.clear();
  add(table);
}

void RowChecksum::add(std::int64_t value) { append_bytes(bytes_, 'i', value); }

void RowChecksum::add(double value) { append_bytes(bytes_, 'd', value); }

void RowChecksum::add(std::string_view text) {
  append_bytes(bytes_, 't', std::uint64_t{text.size()});
  bytes_ += text;
}

void RowChecksum::add_column(const Statement& statement, int column) {
  switch (statement.type(column)) {
    case SQLITE_INTEGER:
      return add(statement.integer(column));
    case SQLITE_FLOAT:
      return add(statement.real(column));
    case SQLITE_TEXT:
      return add(statement.text(column));
    default:
      bytes_ += '?';  // no store holds other types
  }
}

std::int64_t RowChecksum::value() const { return static_cast<std::int64_t>(base::checksum_of(bytes_)); }

CheckedStatement::CheckedStatement(const Database& database, const Table& table, const std::string& clauses)
    : database_(database), table_(table.name), statement_(database, selection(table, clauses)) {}

bool CheckedStatement::step() {
  if (!statement_.step()) return false;
  const int last = statement_.columns() - 1;
  checksum_.begin(table_);
  for (int column = 0; column < last; ++column) checksum_.add_column(statement_, column);
  if (statement_.type(last) == SQLITE_INTEGER && checksum_.value() == statement_.integer(last)) return true;
  const std::int64_t stored = statement_.integer(last);
  const std::string row = "row " + std::string(statement_.text(0)) + " of its table " + std::string(table_);
  statement_.reset();
  throw_damaged_row(database_, row, stored);
}

}  // namespace cadre::store
