// SQLite, as far as the stores need it. Errors are StorageError with the file and SQLite's reason, OutOfSpace where the
// disk is full.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cadre::store {

class Database {
 public:
  enum class Access {
    create,
    read_write,  // or reading only, where the system permits no more
    immutable,   // nobody writes it, and no file is made beside it
  };

  // Reads the header of the file only; neither the log nor the schema is looked at before the first statement.
  Database(std::filesystem::path path, Access access);

  void execute(const char* sql);  // one or more statements without results
  bool in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }
  // Ends the transaction, if SQLite has not done so itself. Never fails.
  void roll_back() noexcept;

  // Opens another database in this connection, whose tables are called `name`.table.
  void attach(const std::filesystem::path& file, const std::string& name);

  // The last connection that closes copies the log into the database and removes it, unless it keeps the log: so that
  // reading a damaged store changes nothing.
  void keep_log(bool keep);
  // Copies the whole log into the database, waits for the disk and empties the log. False when a reader is in the way.
  bool copy_log();

  // Counts work of one statement, in steps of SQLite's virtual machine or bytes that were read. Somebody else may have
  // written a file whose pages refer to each other again and again, so that there is no end of rows: throws
  // StorageError where there is more work than the files' sizes can explain. SQLite's own steps are counted too.
  void begin_work() const { work_->done = 0; }
  void add_work(std::size_t amount) const;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path log_path() const { return path_.string() + "-wal"; }
  sqlite3* handle() const { return handle_.get(); }
  [[noreturn]] void fail(std::string_view doing) const;

 private:
  [[noreturn]] void fail_of_too_much_work() const;
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  struct Work {
    std::vector<std::filesystem::path> files;
    std::uint64_t done = 0;     // by the statement
    std::uint64_t allowed = 0;  // by the sizes that the files had when as much was done

    bool is_too_much();
  };
  std::filesystem::path path_;
  std::unique_ptr<Work> work_;
  std::unique_ptr<sqlite3, Close> handle_;
};

// A prepared statement, used again and again. Parameters are numbered from 1, columns from 0.
class Statement {
 public:
  Statement(const Database& database, const std::string& sql);

  // Values are bound without being copied: they must live until run() or step().
  Statement& bind(int parameter, std::int64_t value);
  Statement& bind(int parameter, double value);
  Statement& bind(int parameter, std::string_view text);

  void run();    // to the end, then ready for the next use
  bool step();   // to the next row; false, and ready for the next use, after the last one
  void reset();  // ready for the next use, before the last row

  int columns() const { return sqlite3_column_count(handle_.get()); }
  int type(int column) const { return sqlite3_column_type(handle_.get(), column); }  // SQLITE_INTEGER and so on
  std::int64_t integer(int column) const { return sqlite3_column_int64(handle_.get(), column); }
  double real(int column) const { return sqlite3_column_double(handle_.get(), column); }
  std::string_view text(int column) const;  // throws as Database::add_work

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* handle) const { sqlite3_finalize(handle); }
  };
  Statement& check(int result);

  const Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

// One of a database's open files, read past SQLite. Opening the database file a second time instead and closing it
// would free SQLite's locks on it, as POSIX has it.
class DatabaseFile {
 public:
  enum class Kind { database, log };

  DatabaseFile(const Database& database, Kind kind);

  std::uint64_t size() const;  // bytes; 0 when there is no such file
  // Bytes from `offset`, fewer than asked for at the end of the file.
  std::string read(std::uint64_t offset, std::size_t size) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  sqlite3_file* file_ = nullptr;
};

}  // namespace cadre::store
