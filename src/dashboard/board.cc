#include "dashboard/board.h"

#include <utility>

namespace cadre::dashboard {

Board::Board(std::string origin, std::function<void()> changed)
    : origin_(std::move(origin)), changed_(std::move(changed)), list_(std::make_shared<LiveDocument>(origin_)) {}

std::shared_ptr<LiveDocument> Board::document(const std::string& id) const {
  if (id.empty()) return list_;
  const std::lock_guard lock(mutex_);
  const auto found = experiments_.find(id);
  return found == experiments_.end() ? nullptr : found->second.document;
}

std::string Board::location(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = experiments_.find(id);
  return found == experiments_.end() ? "" : found->second.location;
}

void Board::want(const LiveDocument& document) {
  if (document.has_document()) return;
  const std::lock_guard lock(mutex_);
  is_wanted_ = true;
  woken_.notify_all();
}

bool Board::has_searched() const {
  const std::lock_guard lock(mutex_);
  return has_searched_;
}

void Board::add(const std::string& id, const std::string& location) {
  const std::lock_guard lock(mutex_);
  Shown& shown = experiments_[id];
  shown.location = location;
  if (!shown.document) shown.document = std::make_shared<LiveDocument>(origin_ + "." + std::to_string(++documents_));
}

void Board::remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  experiments_.erase(id);
}

void Board::note_search() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(has_searched_, true)) return;
  }
  changed_();
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
