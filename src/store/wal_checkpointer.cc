#include "store/wal_checkpointer.h"

#include <sqlite3.h>

namespace cadre::store {
namespace {

constexpr std::size_t kPassiveBytes = std::size_t{4} << 20;   // copy what nobody uses
constexpr std::size_t kRestartBytes = std::size_t{32} << 20;  // hold the writer off and start the log over

sqlite3* open(const std::filesystem::path& path) {
  sqlite3* database = nullptr;
  if (sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READWRITE, nullptr) != SQLITE_OK) {
    sqlite3_close_v2(database);
    return nullptr;
  }
  constexpr int patience_ms = 1'000;
  sqlite3_busy_timeout(database, patience_ms);
  return database;
}

// What fails leaves the log longer and is tried again with the next one; nothing is lost by it.
void copy_log(sqlite3* database) {
  int frames = 0;
  int copied = 0;
  sqlite3_wal_checkpoint_v2(database, nullptr, SQLITE_CHECKPOINT_PASSIVE, &frames, &copied);
  constexpr std::size_t page_bytes = 4096;
  if (frames > 0 && static_cast<std::size_t>(frames) * page_bytes > kRestartBytes)
    sqlite3_wal_checkpoint_v2(database, nullptr, SQLITE_CHECKPOINT_RESTART, &frames, &copied);
}

}  // namespace

WalCheckpointer::WalCheckpointer(std::filesystem::path database)
    : path_(std::move(database)), thread_([this] { run(); }) {}

WalCheckpointer::~WalCheckpointer() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void WalCheckpointer::add(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  pending_ += bytes;
  if (pending_ >= kPassiveBytes) wake_.notify_one();
}

void WalCheckpointer::run() {
  sqlite3* database = nullptr;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return quit_ || pending_ >= kPassiveBytes; });
    if (quit_) break;
    pending_ = 0;
    lock.unlock();
    if (database == nullptr) database = open(path_);
    if (database != nullptr) copy_log(database);
    lock.lock();
  }
  lock.unlock();
  sqlite3_close_v2(database);
}

}  // namespace cadre::store
