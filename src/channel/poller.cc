#include "channel/poller.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

#include "base/system_error.h"
#include "cadre/error.h"

namespace cadre::channel {
namespace {

// More are handled by the next call.
constexpr std::size_t kMostAtOnce = 256;

// Rounds up: a wait that ends too early would be repeated until the time has come.
int milliseconds(std::optional<std::chrono::nanoseconds> timeout) {
  if (!timeout) return -1;
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(*timeout).count();
  return static_cast<int>(std::clamp<std::int64_t>(whole, 0, INT_MAX));
}

}  // namespace

Poller::Poller() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) throw EngineError("cannot wait for connections: " + base::last_system_error());
}

void Poller::watch(int descriptor, std::function<void()> ready) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
    throw EngineError("cannot watch a connection: " + base::last_system_error());
  watched_[descriptor] = std::make_shared<Watched>(Watched{std::move(ready)});
}

void Poller::watch_writing(int descriptor, bool wanted) {
  const auto found = watched_.find(descriptor);
  if (found == watched_.end() || std::exchange(found->second->writing, wanted) == wanted) return;
  epoll_event event{.events = EPOLLIN | (wanted ? EPOLLOUT : 0U), .data = {.fd = descriptor}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event) != 0)
    throw EngineError("cannot watch a connection: " + base::last_system_error());
}

void Poller::unwatch(int descriptor) {
  if (watched_.erase(descriptor) != 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}

bool Poller::wait(std::optional<std::chrono::nanoseconds> timeout) {
  std::array<epoll_event, kMostAtOnce> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), milliseconds(timeout));
  for (int i = 0; i < count; ++i) {
    const auto found = watched_.find(events[static_cast<std::size_t>(i)].data.fd);
    if (found == watched_.end()) continue;  // an earlier function has ended the watch
    const std::shared_ptr<Watched> watched = found->second;
    watched->ready();
  }
  return count > 0;
}

}  // namespace cadre::channel
