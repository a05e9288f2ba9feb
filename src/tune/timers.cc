#include "tune/timers.h"

namespace cadre::tune {

void Timers::start(const Timer& timer, TimePoint due) {
  const Key key(timer.kind, timer.trial);
  if (const auto earlier = timers_.find(key); earlier != timers_.end()) order_.erase({earlier->second.due, key});
  timers_[key] = {timer, due};
  order_.emplace(due, key);
}

std::optional<Timers::TimePoint> Timers::next() const {
  return order_.empty() ? std::nullopt : std::optional(order_.begin()->first);
}

std::vector<Timer> Timers::take_due(TimePoint now) {
  std::vector<Timer> due;
  while (!order_.empty() && order_.begin()->first <= now) {
    const auto entry = timers_.find(order_.begin()->second);
    due.push_back(entry->second.timer);
    timers_.erase(entry);
    order_.erase(order_.begin());
  }
  return due;
}

}  // namespace cadre::tune
