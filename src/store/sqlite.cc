#include "store/sqlite.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/percent_encoding.h"
#include "base/system_error.h"
#include "cadre/error.h"

namespace cadre::store {
namespace {

int last_error(sqlite3_file* file) {
  int reason = 0;
  file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &reason);
  return reason;
}

// Returns true if the last error was a lack of space. SQLite reports ENOSPC itself; the reason of any other failed
// write or sync is known only to its file.
bool out_of_space(sqlite3* handle) {
  const int result = sqlite3_extended_errcode(handle);
  if (result == SQLITE_FULL || result == SQLITE_IOERR_SHMSIZE) return true;
  if (result != SQLITE_IOERR_WRITE && result != SQLITE_IOERR_FSYNC) return false;
  for (const int operation : {SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_FCNTL_FILE_POINTER}) {
    sqlite3_file* file = nullptr;
    sqlite3_file_control(handle, "main", operation, static_cast<void*>(&file));
    const int reason = file != nullptr && file->pMethods != nullptr ? last_error(file) : 0;
    if (reason == ENOSPC || reason == EDQUOT) return true;
  }
  return false;
}

// Returns the URI by which SQLite opens a file as immutable.
std::string immutable_uri(const std::filesystem::path& path) {
  return "file://" + base::percent_encoded(std::filesystem::absolute(path).native(), "/") + "?immutable=1";
}

}  // namespace

bool Database::Work::is_too_much() {
  constexpr std::uint64_t always_allowed = 1'000'000;
  constexpr std::uint64_t allowed_per_byte = 64;  // Cadre's rows take about one step per byte
  if (done <= allowed) return false;
  allowed = always_allowed;
  for (const std::filesystem::path& file : files) {
    for (const char* ending : {"", "-wal"}) {
      std::error_code missing;
      const auto bytes = std::filesystem::file_size(file.string() + ending, missing);
      if (!missing) allowed += allowed_per_byte * bytes;
    }
  }
  return done > allowed;
}

void Database::add_work(std::size_t amount) const {
  work_->done += amount;
  if (work_->is_too_much()) fail_of_too_much_work();
}

void Database::fail_of_too_much_work() const {
  throw StorageError("cannot read the store " + path_.string() +
                     ": it is damaged (it has more rows than its size allows): restore the file from a backup");
}

Database::Database(std::filesystem::path path, Access access) : path_(std::move(path)), work_(new Work{{path_}}) {
  sqlite3* handle = nullptr;
  int result = SQLITE_OK;
  if (access == Access::immutable) {
    result = sqlite3_open_v2(immutable_uri(path_).c_str(), &handle,
                             SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  } else {
    const int flags = SQLITE_OPEN_READWRITE | (access == Access::create ? SQLITE_OPEN_CREATE : 0);
    result = sqlite3_open_v2(path_.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  }
  handle_.reset(handle);
  if (result != SQLITE_OK) fail("open");
  // Another user may have written the file: nothing in it is executed, and SQLite checks pages for damage before it
  // uses them.
  for (const auto& [option, value] : {std::pair(SQLITE_DBCONFIG_DEFENSIVE, 1),
                                      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                      {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                      {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                                      {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0}}) {
    if (sqlite3_db_config(handle, option, value, nullptr) != SQLITE_OK) fail("open");
  }
  constexpr int steps = 100'000;
  const auto look = [](void* data) {
    Work& work = *static_cast<Work*>(data);
    work.done += steps;
    return work.is_too_much() ? 1 : 0;
  };
  sqlite3_progress_handler(handle, steps, look, work_.get());
  constexpr int patience_ms = 10'000;  // for a WAL checkpoint in another connection
  sqlite3_busy_timeout(handle, patience_ms);
}

void Database::execute(const char* sql) {
  if (sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail("use");
}

void Database::roll_back() noexcept {
  if (in_transaction()) sqlite3_exec(handle_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Database::attach(const std::filesystem::path& file, const std::string& name) {
  work_->files.push_back(file);
  Statement(*this, "ATTACH ? AS " + name).bind(1, file.native()).run();
}

void Database::keep_log(bool keep) {
  if (sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep ? 1 : 0, nullptr) != SQLITE_OK)
    fail("use");
}

bool Database::copy_log() {
  const int result = sqlite3_wal_checkpoint_v2(handle_.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  if (result != SQLITE_OK && result != SQLITE_BUSY) fail("copy the log into");
  return result == SQLITE_OK;
}

void Database::fail(std::string_view doing) const {
  const std::string what = "cannot " + std::string(doing) + " the store " + path_.string() + ": ";
  if (!handle_) throw StorageError(what + "out of memory");
  const std::string reason = sqlite3_errmsg(handle_.get());
  if (out_of_space(handle_.get())) throw OutOfSpace(what + reason + "; make space on the disk, then continue");
  const int result = sqlite3_errcode(handle_.get());
  if (result == SQLITE_INTERRUPT) fail_of_too_much_work();
  if (result == SQLITE_CORRUPT || result == SQLITE_NOTADB)
    throw StorageError(what + "it is damaged (" + reason + "): restore the file from a backup");
  throw StorageError(what + reason);
}

Statement::Statement(const Database& database, const std::string& sql) : database_(database) {
  sqlite3_stmt* handle = nullptr;
  if (sqlite3_prepare_v3(database.handle(), sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &handle, nullptr) != SQLITE_OK)
    database.fail("use");
  handle_.reset(handle);
}

Statement& Statement::bind(int parameter, std::int64_t value) {
  return check(sqlite3_bind_int64(handle_.get(), parameter, value));
}

Statement& Statement::bind(int parameter, double value) {
  return check(sqlite3_bind_double(handle_.get(), parameter, value));
}

Statement& Statement::bind(int parameter, std::string_view text) {
  const char* data = text.data() == nullptr ? "" : text.data();  // SQLite would store NULL for a null pointer
  return check(sqlite3_bind_text64(handle_.get(), parameter, data, text.size(), SQLITE_STATIC, SQLITE_UTF8));
}

Statement& Statement::check(int result) {
  if (result != SQLITE_OK) database_.fail("use");
  return *this;
}

void Statement::run() {
  while (step()) {
  }
}

bool Statement::step() {
  if (sqlite3_stmt_busy(handle_.get()) == 0) database_.begin_work();
  const int result = sqlite3_step(handle_.get());
  if (result == SQLITE_ROW) return true;
  sqlite3_reset(handle_.get());
  if (result != SQLITE_DONE) database_.fail("use");
  return false;
}

void Statement::reset() { sqlite3_reset(handle_.get()); }

std::string_view Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(handle_.get(), column));
  database_.add_work(size);
  return bytes ? std::string_view(bytes, size) : std::string_view();
}

DatabaseFile::DatabaseFile(const Database& database, Kind kind)
    : path_(kind == Kind::database ? database.path() : database.log_path()) {
  const int operation = kind == Kind::database ? SQLITE_FCNTL_FILE_POINTER : SQLITE_FCNTL_JOURNAL_POINTER;
  if (sqlite3_file_control(database.handle(), "main", operation, static_cast<void*>(&file_)) != SQLITE_OK)
    database.fail("read");
  if (file_ != nullptr && file_->pMethods == nullptr) file_ = nullptr;  // not opened yet
}

std::uint64_t DatabaseFile::size() const {
  sqlite3_int64 size = 0;
  if (file_ != nullptr && file_->pMethods->xFileSize(file_, &size) != SQLITE_OK)
    throw StorageError("cannot read the size of " + path_.string());
  return static_cast<std::uint64_t>(size);
}

std::string DatabaseFile::read(std::uint64_t offset, std::size_t size) const {
  const std::uint64_t end = this->size();
  if (offset >= end) return {};
  std::string bytes(std::min<std::uint64_t>(size, end - offset), '\0');
  const int result =
      file_->pMethods->xRead(file_, bytes.data(), static_cast<int>(bytes.size()), static_cast<sqlite3_int64>(offset));
  if (result != SQLITE_OK) throw StorageError("cannot read " + path_.string() + ": " + sqlite3_errstr(result));
  return bytes;
}

}  // namespace cadre::store
