// Removes objects that no published state lists any more from a storage, in its own thread: deletions never delay
// uploads, and a failed one is retried later.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "storage/storage.h"

namespace cadre::publish {

class RemovalLane {
 public:
  explicit RemovalLane(std::shared_ptr<storage::Storage> storage);
  // Drops the pending removals; the next session finds these objects again.
  ~RemovalLane();

  enum class What { file, folder };
  void remove(std::string name, What what);
  // Cancels the removal of a name that is about to be used again. Blocks while it is being removed.
  void claim(const std::string& name);

  bool idle() const;

 private:
  struct Removal {
    std::string name;
    What what;
  };
  void run();

  std::shared_ptr<storage::Storage> storage_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Removal> waiting_;
  std::string present_;  // being removed; empty: none
  bool quit_ = false;
  std::thread thread_;  // last member: the thread uses the others
};

}  // namespace cadre::publish
