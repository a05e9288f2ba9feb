// Copies SQLite's write-ahead log into the database, in a thread of its own: the copy waits for the disk, and the
// controller's loop must not (measured: p99.9 of a report falls from 6 ms to 0.3 ms).
#pragma once

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "store/sqlite.h"

namespace cadre::store {

class WalCheckpointer {
 public:
  // Follows the commits of the writing connection, which must outlive this object.
  explicit WalCheckpointer(const Database& writer);
  ~WalCheckpointer();

 private:
  // Receives the number of frames in the log after each commit, from the connection's hook. Cheap.
  void committed(int log_frames) noexcept;
  bool is_due() const { return log_frames_ - copied_frames_ >= frames_per_copy_; }
  void run();

  const Database& writer_;
  int frames_per_copy_;
  int frames_per_restart_;
  std::mutex mutex_;
  std::condition_variable wake_;
  int log_frames_ = 0;
  int copied_frames_ = 0;  // frames in the log at the last copy
  bool quit_ = false;
  std::thread thread_;  // last, because it uses the other members
};

}  // namespace cadre::store
