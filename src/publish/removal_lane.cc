#include "publish/removal_lane.h"

#include <algorithm>

#include "storage/retry.h"

namespace cadre::publish {

RemovalLane::RemovalLane(std::shared_ptr<storage::Storage> storage)
    : storage_(std::move(storage)), thread_([this] { run(); }) {}

RemovalLane::~RemovalLane() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void RemovalLane::remove(std::string name, What what) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(name), what});
  }
  changed_.notify_all();
}

void RemovalLane::claim(const std::string& name) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return present_ != name; });
  std::erase_if(waiting_, [&](const Removal& removal) { return removal.name == name; });  // also one that has failed
}

bool RemovalLane::idle() const {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() && present_.empty();
}

void RemovalLane::run() {
  storage::BackOff back_off;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return quit_ || !waiting_.empty(); });
    if (quit_) return;
    Removal removal = std::move(waiting_.front());
    waiting_.pop_front();
    present_ = removal.name;
    lock.unlock();
    bool removed = true;
    try {
      removal.what == What::file ? storage_->remove(removal.name) : storage_->remove_folder(removal.name);
    } catch (const std::exception&) {  // not reported here: a fault that persists also stops uploads, which report it
      removed = false;
    }
    lock.lock();
    present_.clear();
    changed_.notify_all();
    if (removed) {
      back_off.reset();
    } else {
      waiting_.push_back(std::move(removal));
      changed_.wait_for(lock, back_off.next(), [this] { return quit_; });
    }
  }
}

}  // namespace cadre::publish
