#include "http/server.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "cadre/error.h"
#include "http/kj.h"

namespace cadre::http {
namespace {

constexpr std::size_t kPieceBytes = 64 * 1024;  // is written at a time, and must be accepted within write_timeout
constexpr int kBacklog = 64;
constexpr std::array kEndSignals = {SIGINT, SIGTERM, SIGHUP};
constexpr char kAlive[] = "event: alive\ndata: 1\n\n";

kj::Duration duration_of(std::chrono::milliseconds time) { return time.count() * kj::MILLISECONDS; }

std::string text_of(kj::StringPtr text) { return {text.begin(), text.size()}; }

std::optional<std::string> text_of(kj::Maybe<kj::StringPtr> text) {
  KJ_IF_MAYBE (present, text) return text_of(*present);
  return std::nullopt;
}

[[noreturn]] void throw_not_listening(const ServerOptions& options) {
  const std::string reason = std::generic_category().message(errno);
  const std::string where = fmt::format("port {} of {}", options.port, options.address);
  if (errno == EADDRINUSE)
    throw EngineError(
        fmt::format("{} is in use by another program. Choose another one with --port, or none: then a free "
                    "one is taken",
                    where));
  if (errno == EACCES)
    throw EngineError(fmt::format("may not listen at {}: {}. Ports from 1024 on need no permission", where, reason));
  if (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT)
    throw EngineError(fmt::format("this machine has no address {}: {}", options.address, reason));
  throw EngineError(fmt::format("cannot listen at {}: {}", where, reason));
}

struct SocketAddress {
  sockaddr_storage bytes = {};
  socklen_t size = 0;
};

SocketAddress address_of(const ServerOptions& options) {
  SocketAddress address;
  if (options.address == "127.0.0.1") {
    sockaddr_in ip{};
    ip.sin_family = AF_INET;
    ip.sin_port = htons(options.port);
    ip.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::memcpy(&address.bytes, &ip, address.size = sizeof(ip));
  } else if (options.address == "::1") {
    sockaddr_in6 ip{};
    ip.sin6_family = AF_INET6;
    ip.sin6_port = htons(options.port);
    ip.sin6_addr = in6addr_loopback;
    std::memcpy(&address.bytes, &ip, address.size = sizeof(ip));
  } else {
    throw InvalidArgument("\"" + options.address + "\" is no loopback address: it must be 127.0.0.1 or ::1");
  }
  return address;
}

base::FileDescriptor listen_at(const ServerOptions& options) {
  const SocketAddress address = address_of(options);
  base::FileDescriptor socket(::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // A server that is started again finds its port free at once.
  const int on = 1;
  if (socket.get() < 0 || ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.bytes), address.size) != 0 ||
      ::listen(socket.get(), kBacklog) != 0)
    throw_not_listening(options);
  return socket;
}

std::uint16_t port_of(const base::FileDescriptor& socket) {
  SocketAddress address;
  address.size = sizeof(address.bytes);
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address.bytes), &address.size) != 0)
    throw EngineError("cannot read the port of a socket: " + std::generic_category().message(errno));
  if (address.bytes.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&address.bytes)->sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address.bytes)->sin_port);
}

// kj says on standard error what clients do wrong, such as to vanish.
class SilentLog : public kj::ExceptionCallback {
 public:
  void logMessage(kj::LogSeverity, const char*, int, int, kj::String&&) override {}
};

// Returns the signals that end the server: not those that the program ignores, as under nohup.
std::vector<int> end_signals() {
  std::vector<int> signals;
  for (const int signal : kEndSignals) {
    struct sigaction present = {};
    if (::sigaction(signal, nullptr, &present) == 0 && present.sa_handler != SIG_IGN) signals.push_back(signal);
  }
  return signals;
}

kj::AsyncIoContext set_up(const std::vector<int>& signals) {
  for (const int signal : signals) kj::UnixEventPort::captureSignal(signal);
  return kj::setupAsyncIo();
}

kj::StringPtr reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 503:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
}

}  // namespace

class Server::Implementation final : private kj::HttpService,
                                     private kj::HttpServerErrorHandler,
                                     private kj::TaskSet::ErrorHandler {
 public:
  Implementation(ServerOptions options, Handler handler)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        socket_(listen_at(options_)),
        port_(port_of(socket_)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        signals_(end_signals()),
        io_(set_up(signals_)),
        connections_(*this) {
    kj::HttpHeaderTable::Builder builder;
    origin_ = builder.add("Origin");
    fetch_site_ = builder.add("Sec-Fetch-Site");
    headers_ = builder.build();
    kj::HttpServerSettings settings;
    settings.headerTimeout = duration_of(options_.request_timeout);
    settings.pipelineTimeout = duration_of(options_.idle_timeout);
    settings.errorHandler = static_cast<kj::HttpServerErrorHandler&>(*this);
    server_ = kj::heap<kj::HttpServer>(timer(), *headers_, static_cast<kj::HttpService&>(*this), settings);
  }

  std::uint16_t port() const { return port_; }

  int run() {
    const SilentLog log;  // kj wants it on the stack
    auto receiver = io_.lowLevelProvider->wrapListenSocketFd(
        socket_.get(), kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC | kj::LowLevelAsyncIoProvider::ALREADY_NONBLOCK);
    auto woken = io_.lowLevelProvider->wrapInputFd(
        wake_.get(), kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC | kj::LowLevelAsyncIoProvider::ALREADY_NONBLOCK);
    kj::Promise<int> ended = kj::NEVER_DONE;
    for (const int number : signals_) ended = ended.exclusiveJoin(signal(number));
    auto serving = accept(*receiver).exclusiveJoin(watch(*woken)).then([]() { return 0; });
    return serving.exclusiveJoin(kj::mv(ended)).wait(io_.waitScope);
  }

  void wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof(one));  // full: it is awake anyway
  }

 private:
  kj::Timer& timer() { return io_.provider->getTimer(); }

  kj::Promise<int> signal(int number) {
    return io_.unixEventPort.onSignal(number).then([number](siginfo_t&&) { return number; });
  }

  // ---- Connections

  kj::Promise<void> accept(kj::ConnectionReceiver& receiver) {
    return room()
        .then([&receiver] { return receiver.accept(); })
        .then(
            [this, &receiver](kj::Own<kj::AsyncIoStream>&& connection) {
              ++open_;
              connections_.add(server_->listenHttp(kj::mv(connection)).attach(kj::defer([this] { close_one(); })));
              return accept(receiver);
            },
            [this, &receiver](kj::Exception&&) {  // too many open files, or the client is gone already
              return timer().afterDelay(100 * kj::MILLISECONDS).then([this, &receiver] { return accept(receiver); });
            });
  }

  kj::Promise<void> room() {
    if (open_ < options_.max_connections) return kj::READY_NOW;
    auto pair = kj::newPromiseAndFulfiller<void>();
    room_ = kj::mv(pair.fulfiller);
    return kj::mv(pair.promise);
  }

  void close_one() {
    --open_;
    KJ_IF_MAYBE (waiting, room_) (*waiting)->fulfill();
    room_ = nullptr;
  }

  void taskFailed(kj::Exception&&) override {}  // of one connection, which is closed

  // ---- Requests

  // A request whose body is being read.
  struct Incoming {
    Request request = {};
    std::array<char, 8192> piece = {};
  };

  static Method method_of(kj::HttpMethod method) {
    return method == kj::HttpMethod::GET    ? Method::get
           : method == kj::HttpMethod::HEAD ? Method::head
           : method == kj::HttpMethod::POST ? Method::post
                                            : Method::other;
  }

  kj::Promise<void> request(kj::HttpMethod method, kj::StringPtr url, const kj::HttpHeaders& headers,
                            kj::AsyncInputStream& body, kj::HttpService::Response& response) override {
    if (url.size() > options_.max_target_bytes)
      return answer(http::Response{.status = 414, .body = text("The address is too long.\n")}, response);
    auto incoming = kj::heap<Incoming>();
    incoming->request = {.method = method_of(method),
                         .target = text_of(url),
                         .host = text_of(headers.get(kj::HttpHeaderId::HOST)).value_or(""),
                         .origin = text_of(headers.get(origin_)),
                         .fetch_site = text_of(headers.get(fetch_site_)),
                         .content_type = text_of(headers.get(kj::HttpHeaderId::CONTENT_TYPE)).value_or("")};
    if (incoming->request.method != Method::post) return handle(incoming->request, response);
    auto read = timer().timeoutAfter(duration_of(options_.request_timeout), read_body(body, *incoming));
    return read.then([this, incoming = kj::mv(incoming), &response](bool is_whole) {
      if (is_whole) return handle(incoming->request, response);
      const std::string said = fmt::format("The request has more than {} bytes.\n", options_.max_body_bytes);
      return answer({.status = 413, .body = text(said)}, response);
    });
  }

  // Returns false if the body is too long.
  kj::Promise<bool> read_body(kj::AsyncInputStream& body, Incoming& incoming) {
    return body.tryRead(incoming.piece.data(), 1, incoming.piece.size())
        .then([this, &body, &incoming](std::size_t count) -> kj::Promise<bool> {
          if (count == 0) return true;
          if (incoming.request.body.size() + count > options_.max_body_bytes) return false;
          incoming.request.body.append(incoming.piece.data(), count);
          return read_body(body, incoming);
        });
  }

  kj::Promise<void> handle(const Request& request, kj::HttpService::Response& response) {
    try {
      http::Response made = handler_(request);
      if (request.method == Method::head) made.events.reset();
      if (made.pending) return wait_for(kj::heap(std::move(made.pending)), response);
      return answer(std::move(made), response);
    } catch (const std::exception& error) {
      return answer({.status = 500, .body = text(std::string(error.what()) + "\n")}, response);
    }
  }

  kj::Promise<void> wait_for(kj::Own<std::unique_ptr<PendingResponse>> pending, kj::HttpService::Response& response) {
    if (std::optional<http::Response> made = (*pending)->next()) return answer(*std::move(made), response);
    return next_wake().then(
        [this, pending = kj::mv(pending), &response](bool) mutable { return wait_for(kj::mv(pending), response); });
  }

  static std::shared_ptr<const std::string> text(std::string of) {
    return std::make_shared<const std::string>(std::move(of));
  }

  kj::Promise<void> answer(http::Response made, kj::HttpService::Response& response) {
    kj::HttpHeaders headers(*headers_);
    headers.set(kj::HttpHeaderId::CONTENT_TYPE, kj::heapString(made.type.data(), made.type.size()));
    for (const auto& header : options_.headers) {
      if (std::ranges::find(made.headers, header.first, &Headers::value_type::first) == made.headers.end())
        made.headers.push_back(header);
    }
    for (const auto& [name, value] : made.headers)
      headers.add(kj::heapString(name.data(), name.size()), kj::heapString(value.data(), value.size()));
    const auto status = static_cast<kj::uint>(made.status);
    if (made.events) {
      auto stream = kj::heap<Stream>();
      stream->out = response.send(status, reason_of(made.status), headers);
      stream->source = std::move(made.events);
      auto pumped = pump(*stream);
      return pumped.attach(kj::mv(stream));
    }
    const std::size_t size = made.body ? made.body->size() : 0;
    auto out = response.send(status, reason_of(made.status), headers, size);
    if (size == 0) return kj::READY_NOW;
    auto written = write(*out, *made.body, 0);
    return written.attach(kj::mv(out), kj::heap<std::shared_ptr<const std::string>>(std::move(made.body)));
  }

  // Writes the bytes from `begin` on. A client that does not accept a piece in time fails it.
  kj::Promise<void> write(kj::AsyncOutputStream& out, const std::string& bytes, std::size_t begin) {
    if (begin >= bytes.size()) return kj::READY_NOW;
    const std::size_t size = std::min(kPieceBytes, bytes.size() - begin);
    return timer()
        .timeoutAfter(duration_of(options_.write_timeout), out.write(bytes.data() + begin, size))
        .then([this, &out, &bytes, begin, size] { return write(out, bytes, begin + size); });
  }

  kj::Promise<void> handleClientProtocolError(kj::HttpHeaders::ProtocolError error,
                                              kj::HttpService::Response& response) override {
    return answer({.status = 400, .body = text(text_of(error.description) + "\n")}, response);
  }
  kj::Promise<void> handleApplicationError(kj::Exception, kj::Maybe<kj::HttpService::Response&>) override {
    return kj::READY_NOW;  // the client is gone or too slow: the connection is closed
  }
  kj::Promise<void> handleNoResponse(kj::HttpService::Response&) override { return kj::READY_NOW; }

  // ---- Streams of events

  struct Stream {
    kj::Own<kj::AsyncOutputStream> out;
    std::unique_ptr<EventSource> source = {};
    std::string sending = {};
  };

  kj::Promise<void> pump(Stream& stream) {
    stream.sending = stream.source->next();
    if (stream.sending.empty()) {
      return next_wake().then([this, &stream](bool is_woken) -> kj::Promise<void> {
        if (is_woken) return pump(stream);
        stream.sending = kAlive;
        return write(*stream.out, stream.sending, 0).then([this, &stream] { return pump(stream); });
      });
    }
    return write(*stream.out, stream.sending, 0).then([this, &stream] { return pump(stream); });
  }

  // Returns true after wake(), false when a client should get a sign of life.
  kj::Promise<bool> next_wake() {
    std::erase_if(sleeping_, [](auto& one) { return !one->isWaiting(); });
    auto pair = kj::newPromiseAndFulfiller<bool>();
    sleeping_.push_back(kj::mv(pair.fulfiller));
    return pair.promise.exclusiveJoin(timer().afterDelay(duration_of(options_.keep_alive)).then([] { return false; }));
  }

  kj::Promise<void> watch(kj::AsyncInputStream& woken) {
    return woken.read(&count_, sizeof(count_)).then([this, &woken] {
      std::vector<kj::Own<kj::PromiseFulfiller<bool>>> sleeping;
      sleeping.swap(sleeping_);
      for (auto& one : sleeping) one->fulfill(true);
      return watch(woken);
    });
  }

  ServerOptions options_;
  Handler handler_;
  base::FileDescriptor socket_;
  std::uint16_t port_;
  base::FileDescriptor wake_;
  std::vector<int> signals_;
  kj::AsyncIoContext io_;
  kj::Own<kj::HttpHeaderTable> headers_;
  kj::HttpHeaderId origin_;
  kj::HttpHeaderId fetch_site_;
  kj::Own<kj::HttpServer> server_;
  std::uint64_t count_ = 0;
  std::size_t open_ = 0;
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> room_;
  std::vector<kj::Own<kj::PromiseFulfiller<bool>>> sleeping_ = {};  // streams that wait for wake()
  kj::TaskSet connections_;
};

Server::Server(ServerOptions options, Handler handler)
    : implementation_(std::make_unique<Implementation>(std::move(options), std::move(handler))) {}
Server::~Server() = default;
std::uint16_t Server::port() const { return implementation_->port(); }
int Server::run() { return implementation_->run(); }
void Server::wake() { implementation_->wake(); }

}  // namespace cadre::http
