// Operations that wait for the disk, in a thread of their own, because the controller's loop must not wait: seals
// committed checkpoints, so that they survive a loss of power, and deletes directories.
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
#include "checkpoint/checkpoint_registry.h"

namespace cadre::checkpoint {

class FileWorker {
 public:
  struct Sealed {
    CheckpointId id = 0;
    Dict files = {};  // result of checkpoint::seal_files
  };

  // Delay before sealing. Checkpoints that come faster than this are mostly deleted before they would be sealed.
  static constexpr auto seal_delay = std::chrono::milliseconds(500);

  // `root` is the directory above all checkpoints, `shared` the one in which workers make them, if that is another
  // (control/work_place.h); empty: it is not. `wake` is called in the worker's thread whenever take_sealed() or
  // take_errors() has new entries.
  FileWorker(std::filesystem::path root, std::filesystem::path shared, std::function<void()> wake);
  // Finishes the deletions, and retries failed ones once; does not seal waiting checkpoints.
  ~FileWorker();

  // Seals a committed checkpoint, `seal_delay` from now: one that is deleted before that, because a newer one exists,
  // costs nothing. `directory` is its path below the root. Ids must ascend.
  void seal(CheckpointId id, std::filesystem::path directory);
  // Cancels the sealing of a checkpoint that is gone, or that other code deletes.
  void forget(CheckpointId id);
  // Deletes a checkpoint, or another directory, by its path below the root, and what workers have made of it in the
  // shared place; no link on it is followed. An absolute path is a directory of the user's, who has asked for its
  // deletion.
  void remove(CheckpointId id, std::filesystem::path directory);
  void remove(std::filesystem::path directory);

  // Returns the directories given to remove() that are not deleted yet or could not be.
  std::vector<std::filesystem::path> deletions() const;

  // Seals all waiting checkpoints without delay, and waits until that is done.
  void finish_sealing();

  std::vector<Sealed> take_sealed();
  // Returns a message for each failure to seal or delete since the last call.
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
  void remove_here(const std::filesystem::path& directory) const;

  std::filesystem::path root_;
  std::filesystem::path shared_;
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
  CheckpointId sealing_ = 0;  // while busy_; 0: it is gone meanwhile
  bool quit_ = false;
  bool tried_again_ = false;  // at the end, to delete what could not be deleted
  std::thread thread_;        // last, because it uses the other members
};

}  // namespace cadre::checkpoint
