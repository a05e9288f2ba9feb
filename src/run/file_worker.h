// What waits for the disk, in a thread of its own, because the controller's loop has no time for it: makes committed
// checkpoints survive a loss of power, and deletes directories.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cadre/value.h"
#include "run/checkpoint_registry.h"

namespace cadre::run {

class FileWorker {
 public:
  struct Sealed {
    CheckpointId id = 0;
    Dict files = {};  // run::seal_files
  };

  // Of checkpoints that come faster than this, most are deleted before they were sealed.
  static constexpr auto seal_delay = std::chrono::milliseconds(500);

  // Checkpoints lie below `root`. `wake` is called in the worker's thread whenever take_sealed() or take_errors() has
  // something new.
  FileWorker(std::filesystem::path root, std::function<void()> wake);
  // Finishes the deletions, and tries those once more that failed; what is not sealed yet stays as it is.
  ~FileWorker();

  // Seals a committed checkpoint, `seal_delay` from now: one that is deleted in the meantime, because a newer one has
  // come, costs nothing. `directory` is its path below the root. Ids ascend.
  void seal(CheckpointId id, std::filesystem::path directory);
  // A checkpoint that is gone, or that somebody else deletes.
  void forget(CheckpointId id);
  // Deletes a checkpoint, or another directory, by its path below the root: no link on it is followed. A path that is
  // absolute is one of the user's, who asked for that.
  void remove(CheckpointId id, std::filesystem::path directory);
  void remove(std::filesystem::path directory);

  // What remove() was given and is not deleted yet, or could not be.
  std::vector<std::filesystem::path> deletions() const;

  // Seals everything that is waiting, and returns when that is done.
  void finish_sealing();

  std::vector<Sealed> take_sealed();
  // What could not be sealed or deleted since the last call, a message each.
  std::vector<std::string> take_errors();

 private:
  using Clock = std::chrono::steady_clock;
  struct Pending {
    std::filesystem::path directory;
    Clock::time_point due;
  };

  void run();
  bool has_work() const;
  void seal_next(std::unique_lock<std::mutex>& lock);
  void remove_next(std::unique_lock<std::mutex>& lock);

  std::filesystem::path root_;
  std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<CheckpointId, Pending> to_seal_;  // the first one is due first
  std::deque<std::filesystem::path> to_remove_;
  std::vector<std::filesystem::path> not_removed_;
  std::vector<Sealed> sealed_;
  std::vector<std::string> errors_;
  bool hurry_ = false;
  bool busy_ = false;
  bool quit_ = false;
  bool tried_again_ = false;  // after that, to delete what could not be deleted
  std::thread thread_;        // last: it uses the rest
};

}  // namespace cadre::run
