#include "channel/worker_end.h"

#include <sched.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "channel/patience.h"

namespace cadre::channel {

namespace {

using Clock = std::chrono::steady_clock;

constexpr Clock::duration kLongestPoll = std::chrono::microseconds(300);
constexpr std::chrono::microseconds kIdleAfter = std::chrono::milliseconds(100);

ssize_t poll_for_bytes(int connection, std::span<std::byte> space, Clock::time_point end) {
  for (;;) {
    const ssize_t got = ::recv(connection, space.data(), space.size(), MSG_DONTWAIT);
    if (got >= 0 || errno != EAGAIN || Clock::now() >= end) return got;
    ::sched_yield();
  }
}

// Lets recv(2) wait for so long and no longer; 0: for ever.
void limit_waits(int connection, std::chrono::microseconds longest) {
  const timeval limit{.tv_sec = 0, .tv_usec = longest.count()};
  ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);  // without it nothing is called
}

ssize_t wait_for_bytes(int connection, std::span<std::byte> space, void (*when_idle)()) {
  ssize_t got = ::recv(connection, space.data(), space.size(), 0);
  if (got >= 0 || errno != EAGAIN || when_idle == nullptr) return got;
  when_idle();
  limit_waits(connection, {});
  got = ::recv(connection, space.data(), space.size(), 0);
  const int error = errno;
  limit_waits(connection, kIdleAfter);
  errno = error;
  return got;
}

ssize_t receive_soon(int connection, std::span<std::byte> space, void (*when_idle)()) {
  static thread_local Patience patience(kLongestPoll);
  const auto begin = Clock::now();
  const auto time_to_poll = patience.time_to_poll();
  ssize_t got = -1;
  errno = EAGAIN;
  if (time_to_poll > Clock::duration::zero()) got = poll_for_bytes(connection, space, begin + time_to_poll);
  if (got < 0 && errno == EAGAIN) got = wait_for_bytes(connection, space, when_idle);
  patience.answer_took(Clock::now() - begin);
  return got;
}

}  // namespace

void WorkerEnd::when_idle(void (*act)()) {
  when_idle_ = act;
  limit_waits(connection_.get(), kIdleAfter);
}

Assignment WorkerEnd::receive_assignment() {
  FromController first = decode_from_controller(receive());
  if (auto* assignment = std::get_if<Assignment>(&first)) return std::move(*assignment);
  throw ProtocolError("the controller's first message is no assignment");
}

Answer WorkerEnd::receive_answer() { return receive_reply<Answer>(0); }

Answer WorkerEnd::report(const Report& report) {
  send(report);
  return receive_answer();
}

StoreReply WorkerEnd::call(StoreRequest request) {
  request.call = next_call();
  send(request);
  return receive_reply<StoreReply>(request.call);
}

Reply WorkerEnd::call(Request request) {
  request.call = next_call();
  send(request);
  return receive_reply<Reply>(request.call);
}

CallNumber WorkerEnd::next_call() {
  const std::lock_guard lock(shared_->receiving);
  return ++shared_->calls;
}

template <class Expected>
Expected WorkerEnd::receive_reply(CallNumber call) {
  FromController reply = wait_for(call);
  if (auto* expected = std::get_if<Expected>(&reply)) return std::move(*expected);
  throw ProtocolError("the controller's reply is of another kind than its request");
}

// Returns the reply to a call. The first thread that waits reads the connection for all others; when it has its reply,
// another one reads on.
FromController WorkerEnd::wait_for(CallNumber call) {
  std::unique_lock lock(shared_->receiving);
  for (;;) {
    if (auto reply = shared_->replies.extract(call)) return std::move(reply.mapped());
    if (shared_->has_ended) throw ControllerGone{};
    if (shared_->is_being_read) {
      shared_->arrived.wait(lock);
      continue;
    }
    shared_->is_being_read = true;
    lock.unlock();
    try {
      FromController reply = decode_from_controller(receive());
      lock.lock();
      const CallNumber number = std::visit(
          [](const auto& content) -> CallNumber {
            if constexpr (requires { content.call; }) return content.call;
            return 0;
          },
          reply);
      shared_->replies.insert_or_assign(number, std::move(reply));
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      shared_->is_being_read = false;
      shared_->has_ended = true;
      shared_->arrived.notify_all();
      throw;
    }
    shared_->is_being_read = false;
    shared_->arrived.notify_all();
  }
}

std::span<const std::byte> WorkerEnd::receive() {
  for (;;) {
    if (const auto body = in_.next()) return *body;
    const std::span<std::byte> space = in_.space();
    const ssize_t got = receive_soon(connection_.get(), space, when_idle_);
    if (got > 0) {
      in_.received(static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      throw ControllerGone{};
    }
  }
}

void WorkerEnd::send_frame() {
  for (std::span<const std::byte> rest(shared_->out); !rest.empty();) {
    const ssize_t sent = ::send(connection_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) throw ControllerGone{};
    if (sent > 0) rest = rest.subspan(static_cast<std::size_t>(sent));
  }
}

}  // namespace cadre::channel
