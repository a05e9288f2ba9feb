#include "store/sqlite.h"

#include "cadre/error.h"

namespace cadre::store {

Database::Database(std::filesystem::path path, Access access) : path_(std::move(path)) {
  const int flags = access == Access::create       ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                    : access == Access::read_write ? SQLITE_OPEN_READWRITE
                                                   : SQLITE_OPEN_READONLY;
  sqlite3* handle = nullptr;
  const int result = sqlite3_open_v2(path_.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  handle_.reset(handle);
  if (result != SQLITE_OK) fail("open");
  constexpr int patience_ms = 10'000;  // with a WAL checkpoint that runs in another connection
  sqlite3_busy_timeout(handle, patience_ms);
}

void Database::execute(const char* sql) {
  if (sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail("use");
}

void Database::fail(std::string_view doing) const {
  throw StorageError("cannot " + std::string(doing) + " the store " + path_.string() + ": " +
                     (handle_ ? sqlite3_errmsg(handle_.get()) : "out of memory"));
}

Statement::Statement(const Database& database, const char* sql) : database_(database) {
  sqlite3_stmt* handle = nullptr;
  if (sqlite3_prepare_v3(database.handle(), sql, -1, SQLITE_PREPARE_PERSISTENT, &handle, nullptr) != SQLITE_OK)
    database.fail("use");
  handle_.reset(handle);
}

Statement& Statement::bind(int parameter, std::int64_t value) {
  sqlite3_bind_int64(handle_.get(), parameter, value);
  return *this;
}

Statement& Statement::bind(int parameter, double value) {
  sqlite3_bind_double(handle_.get(), parameter, value);
  return *this;
}

Statement& Statement::bind(int parameter, std::string_view text) {
  sqlite3_bind_text64(handle_.get(), parameter, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind_null(int parameter) {
  sqlite3_bind_null(handle_.get(), parameter);
  return *this;
}

void Statement::run() {
  while (step()) {
  }
}

bool Statement::step() {
  const int result = sqlite3_step(handle_.get());
  if (result == SQLITE_ROW) return true;
  sqlite3_reset(handle_.get());
  if (result != SQLITE_DONE) database_.fail("use");
  return false;
}

std::string_view Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), column));
  return bytes ? std::string_view(bytes, static_cast<std::size_t>(sqlite3_column_bytes(handle_.get(), column)))
               : std::string_view();
}

}  // namespace cadre::store
