#include "store/wal_checkpointer.h"

#include <sqlite3.h>

#include "store/read_store.h"

namespace cadre::store {
namespace {

constexpr std::int64_t kCopyBytes = std::int64_t{4} << 20;      // copy frames that no reader uses
constexpr std::int64_t kRestartBytes = std::int64_t{32} << 20;  // block the writer and start the log over

sqlite3* open(const std::filesystem::path& path) {
  sqlite3* database = nullptr;
  // A connection that has not read anything does not know that there is a log, and copies nothing of it.
  if (sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READWRITE, nullptr) != SQLITE_OK ||
      sqlite3_exec(database, "PRAGMA schema_version", nullptr, nullptr, nullptr) != SQLITE_OK) {
    sqlite3_close_v2(database);
    return nullptr;
  }
  // Starting the log over blocks the writer while it waits for readers to finish: no longer than a report may take. A
  // reader that stays makes the log grow until it finishes.
  constexpr int patience_ms = 10;
  sqlite3_busy_timeout(database, patience_ms);
  return database;
}

// Ignores errors: a failed copy leaves the log longer, loses nothing and is repeated with the next one.
void copy_log(sqlite3* database, int frames_per_restart) {
  int frames = 0;
  int copied = 0;
  sqlite3_wal_checkpoint_v2(database, nullptr, SQLITE_CHECKPOINT_PASSIVE, &frames, &copied);
  if (frames >= frames_per_restart)
    sqlite3_wal_checkpoint_v2(database, nullptr, SQLITE_CHECKPOINT_RESTART, &frames, &copied);
}

}  // namespace

WalCheckpointer::WalCheckpointer(const Database& writer) : writer_(writer) {
  const std::int64_t page_bytes = read_number(writer, "PRAGMA page_size");
  frames_per_copy_ = static_cast<int>(kCopyBytes / page_bytes);
  frames_per_restart_ = static_cast<int>(kRestartBytes / page_bytes);
  thread_ = std::thread([this] { run(); });
  const auto hook = [](void* self, sqlite3*, const char*, int log_frames) {
    static_cast<WalCheckpointer*>(self)->committed(log_frames);
    return SQLITE_OK;
  };
  sqlite3_wal_hook(writer.handle(), hook, this);
}

WalCheckpointer::~WalCheckpointer() {
  sqlite3_wal_hook(writer_.handle(), nullptr, nullptr);
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void WalCheckpointer::committed(int log_frames) noexcept {
  const std::lock_guard lock(mutex_);
  if (log_frames < log_frames_) copied_frames_ = 0;  // the log was started over
  log_frames_ = log_frames;
  if (is_due()) wake_.notify_one();
}

void WalCheckpointer::run() {
  sqlite3* database = nullptr;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return quit_ || is_due(); });
    if (quit_) break;
    copied_frames_ = log_frames_;
    lock.unlock();
    if (database == nullptr) database = open(writer_.path());
    if (database != nullptr) copy_log(database, frames_per_restart_);
    lock.lock();
  }
  lock.unlock();
  sqlite3_close_v2(database);
}

}  // namespace cadre::store
