#include "channel/worker_end.h"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>

namespace cadre::channel {

namespace {

// Waits for bytes. Polls for as long as an answer usually takes, because waking an idle CPU, especially a virtual
// one, costs more than the answer itself. Yields to other threads meanwhile.
ssize_t receive_soon(int connection, std::span<std::byte> space, void (*when_idle)()) {
  constexpr auto patience = std::chrono::microseconds(300);
  const auto end = std::chrono::steady_clock::now() + patience;
  do {
    const ssize_t got = ::recv(connection, space.data(), space.size(), MSG_DONTWAIT);
    if (got >= 0 || errno != EAGAIN) return got;
    ::sched_yield();
  } while (std::chrono::steady_clock::now() < end);
  constexpr int idle_ms = 100;
  pollfd ready{connection, POLLIN, 0};
  if (when_idle != nullptr && ::poll(&ready, 1, idle_ms) == 0) when_idle();
  return ::recv(connection, space.data(), space.size(), 0);
}

}  // namespace

Assignment WorkerEnd::receive_assignment() { return decode_assignment(receive()); }

Answer WorkerEnd::receive_answer() { return decode_answer(receive()); }

Answer WorkerEnd::report(const Report& report) {
  send(report);
  return receive_answer();
}

StoreReply WorkerEnd::call(const StoreRequest& request) {
  send(request);
  return decode_store_reply(receive());
}

Reply WorkerEnd::call(const Request& request) {
  send(request);
  return decode_reply(receive());
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
  for (std::span<const std::byte> rest(out_); !rest.empty();) {
    const ssize_t sent = ::send(connection_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) throw ControllerGone{};
    if (sent > 0) rest = rest.subspan(static_cast<std::size_t>(sent));
  }
}

}  // namespace cadre::channel
