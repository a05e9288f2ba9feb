// SQLite, as far as the stores need it. Errors are StorageError with the file and SQLite's reason.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace cadre::store {

class Database {
 public:
  enum class Access { create, read_write, read_only };

  Database(std::filesystem::path path, Access access);

  void execute(const char* sql);  // one or more statements without results
  const std::filesystem::path& path() const { return path_; }
  sqlite3* handle() const { return handle_.get(); }
  [[noreturn]] void fail(std::string_view doing) const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  std::filesystem::path path_;
  std::unique_ptr<sqlite3, Close> handle_;
};

// A prepared statement, used again and again. Parameters are numbered from 1, columns from 0.
class Statement {
 public:
  Statement(const Database& database, const char* sql);

  // Values are bound without being copied: they must live until run() or step().
  Statement& bind(int parameter, std::int64_t value);
  Statement& bind(int parameter, double value);
  Statement& bind(int parameter, std::string_view text);
  Statement& bind_null(int parameter);

  void run();   // to the end, then ready for the next use
  bool step();  // to the next row; false, and ready for the next use, after the last one

  std::int64_t integer(int column) const { return sqlite3_column_int64(handle_.get(), column); }
  double real(int column) const { return sqlite3_column_double(handle_.get(), column); }
  std::string_view text(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* handle) const { sqlite3_finalize(handle); }
  };
  const Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

}  // namespace cadre::store
