#include "survival/network.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/system_error.h"
#include "cadre/stored.h"
#include "engine/cluster/agent.h"
#include "engine/cluster/dialler.h"
#include "engine/cluster/ordinal.h"

namespace cadre::survival {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostWaiting = std::size_t{64} << 10;  // bytes on their way in one direction
constexpr std::string_view kNoAddress = "-";
constexpr auto kLookAgain = std::chrono::milliseconds(20);  // whether the controller listens

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error("the network of the test: " + what + ": " + base::last_system_error());
}

sockaddr_un unix_address(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = path.string();
  if (text.size() >= sizeof address.sun_path) throw std::runtime_error("too long for a socket: " + text);
  text.copy(address.sun_path, text.size());
  return address;
}

sockaddr_in ip_address(const std::string& text) {
  const engine::cluster::Address found = engine::cluster::to_addresses(text).at(0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(found.port);
  ::inet_pton(AF_INET, found.host.c_str(), &address.sin_addr);
  return address;
}

template <class Address>
const sockaddr* general(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

base::FileDescriptor open_process(pid_t process) {
  return base::FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
}

void send_signal(const base::FileDescriptor& process, int signal) {
  ::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0);
}

bool has_ended(const base::FileDescriptor& process) {
  pollfd ready{process.get(), POLLIN, 0};
  return !process || ::poll(&ready, 1, 0) != 0;
}

// Reads a line without its end; at most a few seconds. A process that is stopped meanwhile has its call interrupted,
// because it has a timeout.
std::string read_line(const base::FileDescriptor& socket) {
  const timeval most{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  std::string line;
  for (char c = 0;;) {
    const ssize_t count = ::read(socket.get(), &c, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count != 1 || c == '\n') return line;
    line += c;
  }
}

void send_at_once(const base::FileDescriptor& socket) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Closes a connection as one does that knows nothing of it any more.
void reset(base::FileDescriptor& socket) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  if (socket) ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  socket.reset();
}

base::FileDescriptor listen_at(sockaddr_in& address) {
  base::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  socklen_t size = sizeof address;
  if (!socket || ::bind(socket.get(), general(address), size) != 0 || ::listen(socket.get(), 16) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return {};
  return socket;
}

// Returns nothing if nobody listens there.
base::FileDescriptor connect_to(const sockaddr_in& address) {
  base::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), general(address), sizeof address) != 0) return {};
  return socket;
}

}  // namespace

std::string enter_network() {
  const char* const path = std::getenv(kNetworkVariable);
  const char* const text = std::getenv(engine::cluster::agent_variable);
  if (path == nullptr || text == nullptr) return "";
  engine::cluster::AgentSettings settings;
  from_stored(settings, Stored(base::parse_json(text, engine::cluster::agent_variable)));
  const std::string name =
      fmt::format("{}.{}", settings.request, engine::cluster::agent_ordinal().value_or(settings.ordinal));
  const base::FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = unix_address(path);
  const std::string asked = fmt::format("{} {}\n", settings.over_stdio ? kNoAddress : settings.addresses, name);
  if (!socket || ::connect(socket.get(), general(address), sizeof address) != 0 ||
      ::write(socket.get(), asked.data(), asked.size()) != static_cast<ssize_t>(asked.size()))
    fail("cannot ask it");
  const std::string answer = read_line(socket);
  if (settings.over_stdio) return name;
  settings.addresses = answer;
  std::string changed;
  base::append_json(changed, to_stored(settings));
  ::setenv(engine::cluster::agent_variable, changed.c_str(), 1);
  return name;
}

Network::Network(fs::path socket)
    : path_(std::move(socket)),
      asked_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const sockaddr_un address = unix_address(path_);
  fs::remove(path_);
  if (!asked_ || !wake_ || ::bind(asked_.get(), general(address), sizeof address) != 0 ||
      ::listen(asked_.get(), 64) != 0)
    fail("cannot listen at " + path_.string());
  thread_ = std::thread([this] { run(); });
}

Network::~Network() {
  heal();
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake();
  thread_.join();
  std::error_code none;
  fs::remove(path_, none);
}

// ---- For the test

std::vector<pid_t> Network::agents() const {
  const std::lock_guard lock(mutex_);
  std::vector<pid_t> found;
  for (const Way& way : ways_)
    if (!has_ended(way.process)) found.push_back(way.agent);
  return found;
}

bool Network::carries(pid_t agent) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(ways_, [agent](const Way& way) { return way.agent == agent && way.is_carried; });
}

template <class Act>
void Network::change(pid_t agent, const Act& act) {
  {
    const std::lock_guard lock(mutex_);
    for (Way& way : ways_)
      if (way.agent == agent) act(way);
  }
  wake();
}

void Network::cut(pid_t agent) { change(agent, reset_all); }

void Network::cut_after(pid_t agent, std::size_t bytes) {
  change(agent, [bytes](Way& way) { way.bytes_to_cut = bytes; });
}

void Network::leave_half_open(pid_t agent, End closed) {
  change(agent, [closed](Way& way) {
    for (Connection& one : way.connections)
      reset(closed == End::agent ? one.agent.descriptor : one.controller.descriptor);
  });
}

void Network::drop(pid_t agent, Milliseconds time) {
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(time);
  change(agent, [until](Way& way) { way.flows_again = std::max(way.flows_again, until); });
}

void Network::stop(const std::vector<pid_t>& processes, Milliseconds time) {
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(time);
  {
    const std::lock_guard lock(mutex_);
    for (const pid_t process : processes) {
      base::FileDescriptor opened = open_process(process);
      if (!opened) continue;
      send_signal(opened, SIGSTOP);
      stopped_.push_back({std::move(opened), until});
    }
  }
  wake();
}

void Network::heal() {
  {
    const std::lock_guard lock(mutex_);
    for (Way& way : ways_) {
      way.flows_again = {};
      way.bytes_to_cut.reset();
    }
    for (Stopped& one : stopped_) one.until = {};
  }
  wake();
}

void Network::wake() const {
  const std::uint64_t one = 1;
  static_cast<void>(::write(wake_.get(), &one, sizeof one));
}

// ---- In the thread

void Network::run() {
  for (;;) {
    turn();
    const std::lock_guard lock(mutex_);
    if (ends_ && stopped_.empty()) return;
  }
}

void Network::turn() {
  std::vector<pollfd> all{{wake_.get(), POLLIN, 0}, {asked_.get(), POLLIN, 0}};
  int wait_ms = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    wait_ms = time_to_wait(now);
    for (const Way& way : ways_) {
      if (way.flows_again > now) continue;
      if (way.listener) all.push_back({way.listener.get(), POLLIN, 0});
      for (const Connection& connection : way.connections) {
        for (const auto& [one, other] : {std::pair(&connection.agent, &connection.controller),
                                         std::pair(&connection.controller, &connection.agent)}) {
          int events = !one->out.empty() ? POLLOUT : 0;
          if (!one->has_ended && other->out.size() < kMostWaiting) events |= POLLIN;
          if (one->descriptor && events != 0) all.push_back({one->descriptor.get(), static_cast<short>(events), 0});
        }
      }
    }
  }
  ::poll(all.data(), all.size(), wait_ms);
  std::uint64_t count = 0;
  while (::read(wake_.get(), &count, sizeof count) > 0) {
  }
  if ((all[1].revents & POLLIN) != 0) admit_agent();
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  handle_time(now);
  for (Way& way : ways_)
    if (way.flows_again <= now) serve(way);
}

int Network::time_to_wait(Clock::time_point now) const {
  Clock::duration least = std::chrono::seconds(1);
  for (const Way& way : ways_) {
    if (way.flows_again > now) least = std::min(least, way.flows_again - now);
    if (way.is_carried && !way.listener) least = std::min(least, way.listens_again - now);
  }
  for (const Stopped& one : stopped_) least = std::min(least, one.until - now);
  return std::max(0, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(least).count()));
}

void Network::handle_time(Clock::time_point now) {
  std::erase_if(stopped_, [now](const Stopped& one) {
    if (one.until > now) return false;
    send_signal(one.process, SIGCONT);
    return true;
  });
  std::erase_if(ways_, [](const Way& way) { return way.connections.empty() && has_ended(way.process); });
  for (Way& way : ways_) {
    if (!way.is_carried || way.listener || way.listens_again > now || way.flows_again > now) continue;
    if (connect_to(way.controller)) way.listener = listen_at(way.address);
    way.listens_again = now + kLookAgain;
  }
}

// An agent connects when it begins; the kernel says which process it is.
void Network::admit_agent() {
  const base::FileDescriptor socket(::accept4(asked_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) return;
  ucred from{};
  socklen_t size = sizeof from;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &from, &size);
  const std::string line = read_line(socket);
  if (line.empty()) return;  // it was killed
  Way way{.agent = from.pid, .process = open_process(from.pid)};
  std::string answer = "\n";
  if (const std::string address = line.substr(0, line.find(' ')); address != kNoAddress) {
    way.controller = ip_address(address);
    way.address = ip_address("127.0.0.1:0");
    way.listener = listen_at(way.address);
    if (!way.listener) return;
    way.is_carried = true;
    answer = fmt::format("127.0.0.1:{}\n", ntohs(way.address.sin_port));
  }
  {
    const std::lock_guard lock(mutex_);
    ways_.push_back(std::move(way));
  }
  static_cast<void>(::send(socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL));
}

// Nobody listens at this end either when nobody does at the other one.
void Network::accept(Way& way) {
  for (;;) {
    base::FileDescriptor agent(::accept4(way.listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!agent) return;
    base::FileDescriptor controller = connect_to(way.controller);
    if (!controller) {
      reset(agent);
      way.listener.reset();
      way.listens_again = Clock::now() + kLookAgain;
      return;
    }
    send_at_once(agent);
    send_at_once(controller);
    way.connections.push_back({{.descriptor = std::move(agent)}, {.descriptor = std::move(controller)}});
  }
}

void Network::serve(Way& way) {
  if (way.listener) accept(way);
  std::erase_if(way.connections, [&way](Connection& connection) {
    const bool goes_on =
        forward(way, connection.agent, connection.controller) && forward(way, connection.controller, connection.agent);
    const bool is_over = connection.agent.is_shut && connection.controller.is_shut;
    if (goes_on && !is_over) return false;
    if (!goes_on) {
      reset(connection.agent.descriptor);
      reset(connection.controller.descriptor);
    }
    return true;
  });
  if (way.bytes_to_cut == std::size_t{0}) {
    reset_all(way);
    way.bytes_to_cut.reset();
  }
}

// Forwards what is there, up to a cut. Returns false if the connection has broken.
bool Network::forward(Way& way, Socket& from, Socket& to) {
  if (!from.descriptor && !to.descriptor) return false;
  std::array<char, kMostWaiting> space;
  while (from.descriptor && !from.has_ended && to.out.size() < kMostWaiting) {
    const std::size_t most = std::min(space.size(), way.bytes_to_cut.value_or(space.size()));
    if (most == 0) break;
    const ssize_t count = ::recv(from.descriptor.get(), space.data(), most, MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) return false;
    from.has_ended = count == 0;
    if (to.descriptor) to.out.insert(to.out.end(), space.begin(), space.begin() + count);
    if (way.bytes_to_cut) *way.bytes_to_cut -= static_cast<std::size_t>(count);
  }
  while (to.descriptor && !to.out.empty()) {
    const ssize_t count = ::send(to.descriptor.get(), to.out.data(), to.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) return false;
    to.out.erase(to.out.begin(), to.out.begin() + count);
  }
  if (!to.descriptor && from.has_ended) return false;  // half open, until the end that was left closes it
  if (from.has_ended && to.out.empty() && !std::exchange(to.is_shut, true)) ::shutdown(to.descriptor.get(), SHUT_WR);
  return true;
}

void Network::reset_all(Way& way) {
  for (Connection& one : way.connections) {
    reset(one.agent.descriptor);
    reset(one.controller.descriptor);
  }
  way.connections.clear();
}

}  // namespace cadre::survival
