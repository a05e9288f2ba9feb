#include "engine/cluster/dialler.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/system_error.h"
#include "cadre/error.h"

namespace cadre::engine::cluster {
namespace {

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;
};

std::optional<SocketAddress> socket_address(const Address& address) {
  SocketAddress result;
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&result.storage);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&result.storage);
  if (::inet_pton(AF_INET, address.host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(address.port);
    result.size = sizeof *v4;
  } else if (::inet_pton(AF_INET6, address.host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(address.port);
    result.size = sizeof *v6;
  } else {
    return std::nullopt;
  }
  return result;
}

Address to_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  Address address;
  if (colon != std::string::npos) {
    address.host = text.substr(0, colon);
    if (address.host.starts_with('[') && address.host.ends_with(']'))
      address.host = address.host.substr(1, address.host.size() - 2);
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, address.port);
    if (rest == end && error == std::errc() && socket_address(address)) return address;
  }
  throw InvalidArgument(fmt::format("\"{}\" is not an IP address with a port, such as 10.0.0.1:5000", text));
}

std::string to_text(const Address& address) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", is_v6 ? "[" : "", address.host, is_v6 ? "]" : "", address.port);
}

}  // namespace

std::string to_text(const std::vector<Address>& addresses) {
  std::string text;
  for (const Address& address : addresses) text += (text.empty() ? "" : ",") + to_text(address);
  return text;
}

std::vector<Address> to_addresses(const std::string& text) {
  std::vector<Address> addresses;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    addresses.push_back(to_address(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return addresses;
}

Dialler::Dialler(channel::Poller& poller, std::vector<Address> addresses)
    : poller_(poller), addresses_(std::move(addresses)) {}

void Dialler::dial(TimePoint deadline, std::function<void(base::FileDescriptor)> connected) {
  stop();
  deadline_ = deadline;
  connected_ = std::move(connected);
  failure_ = Failure{.all_refused = true};
  for (const Address& address : addresses_) begin(address);
}

void Dialler::begin(const Address& address) {
  const SocketAddress to = *socket_address(address);
  base::FileDescriptor socket(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return note(address, errno);
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.size) != 0 && errno != EINPROGRESS)
    return note(address, errno);
  const int descriptor = socket.get();
  attempts_.push_back({address, std::move(socket)});
  poller_.watch(descriptor, [this, descriptor] { on_ready(descriptor); });
  poller_.watch_writing(descriptor, true);
}

void Dialler::on_ready(int socket) {
  const auto found = std::ranges::find(attempts_, socket, [](const Attempt& attempt) { return attempt.socket.get(); });
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  poller_.unwatch(socket);
  Attempt attempt = std::move(*found);
  attempts_.erase(found);
  if (error != 0) return note(attempt.address, error);
  stop();
  failure_.reset();
  connected_(std::move(attempt.socket));
}

void Dialler::note(const Address& address, int error) {
  failure_->all_refused &= error == ECONNREFUSED;
  failure_->reason += fmt::format("{}{}: {}", failure_->reason.empty() ? "" : "; ", to_text(address),
                                  std::generic_category().message(error));
}

std::optional<Dialler::TimePoint> Dialler::deadline() const {
  return is_dialling() ? std::optional(deadline_) : std::nullopt;
}

std::optional<Dialler::Failure> Dialler::take_failure(TimePoint now) {
  if (is_dialling() && now < deadline_) return std::nullopt;
  for (const Attempt& attempt : attempts_) note(attempt.address, ETIMEDOUT);
  stop();
  return std::exchange(failure_, std::nullopt);
}

void Dialler::stop() {
  for (const Attempt& attempt : attempts_) poller_.unwatch(attempt.socket.get());
  attempts_.clear();
}

}  // namespace cadre::engine::cluster
