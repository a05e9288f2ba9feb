#include "channel/stream.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/system_error.h"

namespace cadre::channel {
namespace {

void make_non_blocking(const base::FileDescriptor& descriptor) {
  const int flags = ::fcntl(descriptor.get(), F_GETFL);
  if (flags < 0 || ::fcntl(descriptor.get(), F_SETFL, flags | O_NONBLOCK) != 0)
    throw StreamEnded("a connection cannot be used: " + base::last_system_error());
}

// Returns the result of read(2) or write(2), which `call` calls, with 0 for "not at this time".
template <class Call>
std::size_t transfer(Call call) {
  for (;;) {
    const ssize_t count = call();
    if (count > 0) return static_cast<std::size_t>(count);
    if (count == 0) throw StreamEnded("the other end has closed the connection");
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno != EINTR) throw StreamEnded("the connection broke: " + base::last_system_error());
  }
}

}  // namespace

SocketStream::SocketStream(base::FileDescriptor socket) : socket_(std::move(socket)) { make_non_blocking(socket_); }

std::size_t SocketStream::read(std::span<std::byte> space) {
  return transfer([&] { return ::recv(socket_.get(), space.data(), space.size(), MSG_DONTWAIT); });
}

std::size_t SocketStream::write(std::span<const std::byte> bytes) {
  if (bytes.empty()) return 0;
  const auto send = [&] { return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL); };
  const std::size_t count = transfer(send);
  is_full_ = count == 0;
  return count;
}

PairStream::PairStream(base::FileDescriptor input, base::FileDescriptor output)
    : input_(std::move(input)), output_(std::move(output)), both_(::epoll_create1(EPOLL_CLOEXEC)) {
  make_non_blocking(input_);
  make_non_blocking(output_);
  epoll_event readable{.events = EPOLLIN, .data = {}};
  if (::epoll_ctl(both_.get(), EPOLL_CTL_ADD, input_.get(), &readable) != 0)
    throw StreamEnded("a connection cannot be watched: " + base::last_system_error());
}

std::size_t PairStream::read(std::span<std::byte> space) {
  return transfer([&] { return ::read(input_.get(), space.data(), space.size()); });
}

std::size_t PairStream::write(std::span<const std::byte> bytes) {
  if (bytes.empty()) return 0;
  const std::size_t count = transfer([&] { return ::write(output_.get(), bytes.data(), bytes.size()); });
  if (is_full_ == (count == 0)) return count;
  is_full_ = count == 0;
  // Watched only then: an output whose reader is gone is always ready, and says so in the next write.
  epoll_event writable{.events = EPOLLOUT, .data = {}};
  if (::epoll_ctl(both_.get(), is_full_ ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, output_.get(), &writable) != 0)
    throw StreamEnded("a connection cannot be watched: " + base::last_system_error());
  return count;
}

}  // namespace cadre::channel
