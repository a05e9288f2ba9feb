#include "dashboard/board.h"

#include <utility>

namespace cadre::dashboard {

Board::Board(std::string origin, std::function<void()> changed)
    : origin_(std::move(origin)), changed_(std::move(changed)), list_(std::make_shared<LiveDocument>(origin_)) {}

std::shared_ptr<LiveDocument> Board::document(const std::string& id) const {
  if (id.empty()) return list_;
  const std::lock_guard lock(mutex_);
  const auto found = documents_.find(id);
  return found == documents_.end() ? nullptr : found->second;
}

void Board::want(const LiveDocument& document) {
  if (document.has_document()) return;
  const std::lock_guard lock(mutex_);
  is_wanted_ = true;
  woken_.notify_all();
}

void Board::add(const std::string& id) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<LiveDocument>& document = documents_[id];
  if (!document) document = std::make_shared<LiveDocument>(origin_);
}

void Board::remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  documents_.erase(id);
}

bool Board::sleep(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  woken_.wait_for(lock, time, [this] { return stopped_ || is_wanted_; });
  is_wanted_ = false;
  return !stopped_;
}

bool Board::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

void Board::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  woken_.notify_all();
}

}  // namespace cadre::dashboard
