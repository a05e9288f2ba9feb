#include "channel/loop.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <utility>
#include <vector>

#include "cadre/error.h"
#include "channel/codec.h"
#include "channel/frame.h"
#include "channel/kj.h"
#include "channel/patience.h"

namespace cadre::channel {
namespace {

using FdObserver = kj::UnixEventPort::FdObserver;

// A worker that only reports has its next report ready this soon after an answer. Waking a CPU costs about as much.
constexpr std::chrono::nanoseconds longest_poll = std::chrono::microseconds(50);

// kj ignores SIGPIPE in the whole process for its own writes. Cadre's writes use MSG_NOSIGNAL, and the user's program
// may rely on SIGPIPE (`program | head`), so its handler is restored.
kj::UnixEventPort make_port() {
  struct KeepHandler {
    KeepHandler() { ::sigaction(SIGPIPE, nullptr, &handler); }
    ~KeepHandler() { ::sigaction(SIGPIPE, &handler, nullptr); }
    struct sigaction handler = {};
  } keep;
  return kj::UnixEventPort();
}

kj::TimePoint after(std::chrono::nanoseconds timeout) {
  constexpr std::chrono::nanoseconds longest = std::chrono::hours(24 * 365);
  return kj::systemPreciseMonotonicClock().now() + std::min(timeout, longest).count() * kj::NANOSECONDS;
}

using OnFailure = std::function<void(const kj::Exception&)>;

// Calls `readable` whenever the descriptor may have become readable, until destroyed (not from inside the call).
// Calls `failed` once, and nothing afterwards, if kj cannot continue, for example without memory.
class ReadWatch {
 public:
  ReadWatch(kj::UnixEventPort& port, int fd, std::function<void()> readable, OnFailure failed)
      : readable_(std::move(readable)), observer_(port, fd, FdObserver::OBSERVE_READ), task_(kj::READY_NOW) {
    task_ = repeat().eagerlyEvaluate([failed = std::move(failed)](kj::Exception&& error) { failed(error); });
  }

  // Returns true if the next read would find nothing, not even end-of-file, after a read that only partly filled its
  // buffer.
  bool surely_open() {
    KJ_IF_MAYBE (at_end, observer_.atEndHint()) return !*at_end;
    return false;
  }

 private:
  kj::Promise<void> repeat() {
    return observer_.whenBecomesReadable().then([this] {
      readable_();
      return repeat();
    });
  }

  std::function<void()> readable_;
  FdObserver observer_;
  kj::Promise<void> task_;  // declared after the members that it uses
};

// Writes the bytes that the socket did not accept at once. Watches a duplicate of the descriptor, and only while
// bytes are left: otherwise each answer that a worker reads would wake the loop.
class WriteWatch {
 public:
  WriteWatch(kj::UnixEventPort& port, int fd)
      : fd_(::fcntl(fd, F_DUPFD_CLOEXEC, 0)), observer_(port, fd_.get(), FdObserver::OBSERVE_WRITE) {}

  // Calls `write` whenever the socket is writable, until it returns true: nothing is left to write.
  kj::Promise<void> until(std::function<bool()> write) {
    return observer_.whenBecomesWritable().then([this, write = std::move(write)]() mutable -> kj::Promise<void> {
      if (write()) return kj::READY_NOW;
      return until(std::move(write));
    });
  }

 private:
  base::FileDescriptor fd_;
  FdObserver observer_;
};

EngineError to_engine_error(const kj::Exception& error) {
  return EngineError(std::string("the event loop failed: ") + error.getDescription().cStr());
}

}  // namespace

class Loop::Implementation {
 public:
  Implementation() : port_(make_port()), loop_(port_), scope_(loop_) {}

  ConnectionId add_connection(base::FileDescriptor socket, Handlers handlers);
  template <class Message>
  void send(ConnectionId connection, const Message& message);
  void send_frame(ConnectionId connection, std::span<const std::byte> frame);
  void expect_soon() { expects_soon_ = true; }
  void drain(ConnectionId connection);
  void close(ConnectionId connection);
  void watch(int fd, std::function<void()> readable);
  void unwatch(int fd);
  void turn(std::optional<std::chrono::nanoseconds> timeout);

 private:
  struct Connection {
    Connection(base::FileDescriptor of, Handlers to) : socket(std::move(of)), handlers(std::move(to)) {}

    base::FileDescriptor socket;
    Handlers handlers;
    FrameReader in;
    Bytes out;  // not yet accepted by the socket: at most an assignment and an answer
    bool open = true;
    std::optional<ReadWatch> reading;
    kj::Promise<void> writing = kj::READY_NOW;
  };

  void read(Connection& connection, bool to_the_end);
  void read_messages(Connection& connection, bool to_the_end);
  void end(Connection& connection, const std::string& reason);
  void write(Connection& connection, std::span<const std::byte> frame);
  void write_later(Connection& connection, std::span<const std::byte> bytes);
  static std::size_t write_now(Connection& connection, std::span<const std::byte> bytes);
  void poll(std::chrono::steady_clock::time_point end);
  void sleep(std::optional<std::chrono::nanoseconds> timeout);
  void keep(std::exception_ptr failure);
  OnFailure keep_failure();
  void happened();
  bool runs_callbacks() const { return turning_ || draining_ > 0; }
  void forget_closed();
  void rethrow();

  kj::UnixEventPort port_;
  kj::EventLoop loop_;
  kj::WaitScope scope_;
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> wake_;
  std::map<ConnectionId, std::unique_ptr<Connection>> connections_;
  std::map<int, std::unique_ptr<ReadWatch>> watches_;
  // Closed connections and watches, kept until none of their callbacks can be running.
  std::vector<std::unique_ptr<Connection>> closed_connections_;
  std::vector<std::unique_ptr<ReadWatch>> closed_watches_;
  ConnectionId last_id_ = 0;
  Bytes frame_;
  std::exception_ptr failure_;
  Patience patience_{longest_poll};
  bool turning_ = false;
  int draining_ = 0;           // calls of drain() that have not returned
  bool happened_ = false;      // since the last turn
  bool expects_soon_ = false;  // since the last turn
};

ConnectionId Loop::Implementation::add_connection(base::FileDescriptor socket, Handlers handlers) {
  auto connection = std::make_unique<Connection>(std::move(socket), std::move(handlers));
  Connection& added = *connection;
  added.reading.emplace(port_, added.socket.get(), [this, &added] { read(added, false); }, keep_failure());
  connections_.emplace(++last_id_, std::move(connection));
  return last_id_;
}

template <class Message>
void Loop::Implementation::send(ConnectionId id, const Message& message) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || !found->second->open) return;
  expects_soon_ |= !std::same_as<Message, Assignment>;
  encode(message, frame_);
  write(*found->second, frame_);
  if (frame_.size() > max_idle_bytes) Bytes().swap(frame_);
}

void Loop::Implementation::send_frame(ConnectionId id, std::span<const std::byte> frame) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || !found->second->open) return;
  expects_soon_ = true;
  write(*found->second, frame);
}

void Loop::Implementation::write(Connection& connection, std::span<const std::byte> frame) {
  const std::size_t written = connection.out.empty() ? write_now(connection, frame) : 0;
  if (written < frame.size()) write_later(connection, frame.subspan(written));
}

std::size_t Loop::Implementation::write_now(Connection& connection, std::span<const std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto rest = bytes.subspan(done);
    const ssize_t sent = ::send(connection.socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) done += static_cast<std::size_t>(sent);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (sent < 0 && errno != EINTR) {
      ::shutdown(connection.socket.get(), SHUT_RDWR);  // nothing can be sent any more; the next read reports the end
      return bytes.size();
    }
  }
  return done;
}

void Loop::Implementation::write_later(Connection& connection, std::span<const std::byte> bytes) {
  const bool idle = connection.out.empty();
  connection.out.insert(connection.out.end(), bytes.begin(), bytes.end());
  if (!idle) return;
  auto watch = kj::heap<WriteWatch>(port_, connection.socket.get());
  auto done = watch->until([&connection, written = std::size_t{0}]() mutable {
    written += write_now(connection, std::span<const std::byte>(connection.out).subspan(written));
    if (written < connection.out.size()) return false;
    Bytes().swap(connection.out);
    return true;
  });
  connection.writing =
      done.attach(kj::mv(watch)).eagerlyEvaluate([failed = keep_failure()](kj::Exception&& error) { failed(error); });
}

void Loop::Implementation::read(Connection& connection, bool to_the_end) {
  try {
    read_messages(connection, to_the_end);
  } catch (const ProtocolError& error) {
    end(connection, error.what());
  } catch (...) {
    keep(std::current_exception());
  }
}

void Loop::Implementation::read_messages(Connection& connection, bool to_the_end) {
  while (connection.open) {
    const std::span<std::byte> space = connection.in.space();
    const ssize_t got = ::recv(connection.socket.get(), space.data(), space.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return end(connection, "");
    connection.in.received(static_cast<std::size_t>(got));
    while (connection.open) {
      const auto body = connection.in.next();
      if (!body) break;
      if (connection.handlers.body) {
        happened();
        connection.handlers.body(*body);
        continue;
      }
      Message message = decode_message(*body);
      happened();
      connection.handlers.message(std::move(message));
    }
    if (!to_the_end && static_cast<std::size_t>(got) < space.size() && connection.reading->surely_open()) return;
  }
}

void Loop::Implementation::end(Connection& connection, const std::string& reason) {
  connection.open = false;
  ::shutdown(connection.socket.get(), SHUT_RDWR);
  happened();
  try {
    connection.handlers.closed(reason);
  } catch (...) {
    keep(std::current_exception());
  }
}

void Loop::Implementation::drain(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  ++draining_;
  read(*found->second, true);
  if (--draining_ > 0 || turning_) return;
  forget_closed();
  rethrow();
}

void Loop::Implementation::forget_closed() {
  closed_connections_.clear();
  closed_watches_.clear();
}

void Loop::Implementation::close(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  found->second->open = false;
  if (runs_callbacks()) closed_connections_.push_back(std::move(found->second));
  connections_.erase(found);
}

void Loop::Implementation::watch(int fd, std::function<void()> readable) {
  const auto call = [this, readable = std::move(readable)] {
    happened();
    try {
      readable();
    } catch (...) {
      keep(std::current_exception());
    }
  };
  watches_[fd] = std::make_unique<ReadWatch>(port_, fd, call, keep_failure());
}

void Loop::Implementation::unwatch(int fd) {
  const auto found = watches_.find(fd);
  if (found == watches_.end()) return;
  if (runs_callbacks()) closed_watches_.push_back(std::move(found->second));
  watches_.erase(found);
}

void Loop::Implementation::turn(std::optional<std::chrono::nanoseconds> timeout) {
  if (std::exchange(turning_, true)) {
    std::fputs("cadre: a turn of the event loop was asked for inside one of its callbacks\n", stderr);
    std::abort();
  }
  const bool expects_soon = std::exchange(expects_soon_, false);
  const auto begin = std::chrono::steady_clock::now();
  poll(begin + (expects_soon ? patience_.time_to_poll() : std::chrono::nanoseconds::zero()));
  const bool may_sleep = !timeout || *timeout > std::chrono::nanoseconds::zero();
  if (!happened_ && may_sleep) {
    sleep(timeout);
    scope_.poll();  // runs everything else that is ready
  }
  if (expects_soon && (happened_ || may_sleep)) patience_.answer_took(std::chrono::steady_clock::now() - begin);
  happened_ = false;
  turning_ = false;
  forget_closed();
  rethrow();
}

// Runs the ready callbacks. If there are none, polls until `end` and yields to other threads meanwhile.
void Loop::Implementation::poll(std::chrono::steady_clock::time_point end) {
  for (;;) {
    scope_.poll();
    if (happened_ || std::chrono::steady_clock::now() >= end) return;
    ::sched_yield();
  }
}

void Loop::Implementation::sleep(std::optional<std::chrono::nanoseconds> timeout) {
  auto woken = kj::newPromiseAndFulfiller<void>();
  wake_ = kj::mv(woken.fulfiller);
  if (!timeout) return woken.promise.wait(scope_);
  woken.promise.exclusiveJoin(port_.getTimer().atTime(after(*timeout))).wait(scope_);
}

void Loop::Implementation::happened() {
  happened_ = true;
  KJ_IF_MAYBE (wake, wake_) (*wake)->fulfill();
  wake_ = nullptr;
}

void Loop::Implementation::keep(std::exception_ptr failure) {
  happened();
  if (!failure_) failure_ = std::move(failure);
}

// Reports a failed watch from turn(): its messages would otherwise stay unread.
OnFailure Loop::Implementation::keep_failure() {
  return [this](const kj::Exception& error) { keep(std::make_exception_ptr(to_engine_error(error))); };
}

void Loop::Implementation::rethrow() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

// ---- The boundary: kj::Exception does not leave it

namespace {

template <class Call>
auto translated(Call call) {
  try {
    return call();
  } catch (const kj::Exception& error) {
    throw to_engine_error(error);
  }
}

}  // namespace

Loop::Loop() : implementation_(translated([] { return std::make_unique<Implementation>(); })) {}
Loop::~Loop() = default;

ConnectionId Loop::add_connection(base::FileDescriptor socket, Handlers handlers) {
  return translated([&] { return implementation_->add_connection(std::move(socket), std::move(handlers)); });
}
void Loop::send(ConnectionId connection, const Assignment& assignment) {
  translated([&] { implementation_->send(connection, assignment); });
}
void Loop::send(ConnectionId connection, const Answer& answer) {
  translated([&] { implementation_->send(connection, answer); });
}
void Loop::send(ConnectionId connection, const StoreReply& reply) {
  translated([&] { implementation_->send(connection, reply); });
}
void Loop::send(ConnectionId connection, const Reply& reply) {
  translated([&] { implementation_->send(connection, reply); });
}
void Loop::send_frame(ConnectionId connection, std::span<const std::byte> frame) {
  translated([&] { implementation_->send_frame(connection, frame); });
}
void Loop::expect_soon() { implementation_->expect_soon(); }
void Loop::drain(ConnectionId connection) {
  translated([&] { implementation_->drain(connection); });
}
void Loop::close(ConnectionId connection) {
  translated([&] { implementation_->close(connection); });
}
void Loop::watch(int fd, std::function<void()> readable) {
  translated([&] { implementation_->watch(fd, std::move(readable)); });
}
void Loop::unwatch(int fd) {
  translated([&] { implementation_->unwatch(fd); });
}
void Loop::turn(std::optional<std::chrono::nanoseconds> timeout) {
  translated([&] { implementation_->turn(timeout); });
}

}  // namespace cadre::channel
