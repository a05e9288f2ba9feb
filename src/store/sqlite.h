// The part of SQLite that the stores need. Errors are StorageError with the file and SQLite's reason, or OutOfSpace if
// the disk is full.
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
    read_write,  // read-only if the system permits no more
    immutable,   // no process writes it, and no file is made beside it
  };

  // Opens the database. SQLite reads neither the log nor the schema before the first statement.
  Database(std::filesystem::path path, Access access);

  void execute(const char* sql);  // one or more statements without results
  bool in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }
  // Rolls back the transaction, if SQLite has not done so itself. Never fails.
  void roll_back() noexcept;

  // Attaches another database to this connection; its tables are called `name`.table.
  void attach(const std::filesystem::path& file, const std::string& name);

  // Sets whether the log is kept at the end. Otherwise the last connection that closes copies the log into the database
  // and removes it, which would change a damaged store that is only read.
  void keep_log(bool keep);
  // Copies the whole log into the database, waits for the disk and empties the log. Returns false if a reader prevents
  // it.
  bool copy_log();

  // Count the work of one statement, in steps of SQLite's virtual machine and bytes read; steps are counted
  // automatically. A manipulated file can have pages that refer to each other in a cycle, and so endless rows: add_work
  // throws StorageError if there is more work than the files' sizes can explain.
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
    std::uint64_t done = 0;     // work of the statement
    std::uint64_t allowed = 0;  // limit by the files' sizes, computed when `done` last exceeded it

    bool is_too_much();
  };
  std::filesystem::path path_;
  std::unique_ptr<Work> work_;
  std::unique_ptr<sqlite3, Close> handle_;
};

// A prepared statement, for repeated use. Parameters are numbered from 1, columns from 0.
class Statement {
 public:
  Statement(const Database& database, const std::string& sql);

  // Binds a value without copying it: texts must live until run() or step().
  Statement& bind(int parameter, std::int64_t value);
  Statement& bind(int parameter, double value);
  Statement& bind(int parameter, std::string_view text);

  void run();    // runs to the end, then is ready for the next use
  bool step();   // moves to the next row; after the last one returns false and is ready for the next use
  void reset();  // ends early, ready for the next use

  int columns() const { return sqlite3_column_count(handle_.get()); }
  int type(int column) const { return sqlite3_column_type(handle_.get(), column); }  // SQLITE_INTEGER and so on
  std::int64_t integer(int column) const { return sqlite3_column_int64(handle_.get(), column); }
  double real(int column) const { return sqlite3_column_double(handle_.get(), column); }
  std::string_view text(int column) const;  // throws like Database::add_work

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* handle) const { sqlite3_finalize(handle); }
  };
  Statement& check(int result);

  const Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

// One of a database's open files, read past SQLite. It uses SQLite's descriptor: opening the database file a second
// time and closing it would free SQLite's locks on it, by the rules of POSIX.
class DatabaseFile {
 public:
  enum class Kind { database, log };

  DatabaseFile(const Database& database, Kind kind);

  std::uint64_t size() const;  // bytes; 0 if there is no such file
  // Returns bytes from `offset` on, fewer than `size` at the end of the file.
  std::string read(std::uint64_t offset, std::size_t size) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  sqlite3_file* file_ = nullptr;
};

}  // namespace cadre::store
