// Removes from a storage what no published state has any more, in a thread of its own: deletions never hold up uploads,
// and one that fails is tried again later.
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
  // What is left is not removed: the next session finds it.
  ~RemovalLane();

  enum class What { file, folder };
  void remove(std::string name, What what);
  // The name is about to be used again: it is not removed from now on. Waits while it is being removed.
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
  std::thread thread_;  // last: it uses the rest
};

}  // namespace cadre::publish
