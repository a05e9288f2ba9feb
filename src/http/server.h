// An HTTP server on a loopback address.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "http/message.h"

namespace cadre::http {

struct ServerOptions {
  std::string address = "127.0.0.1";  // or "::1"
  std::uint16_t port = 0;             // 0: a free one
  // Added to every response that lacks them, also where the handler never sees the request.
  Headers headers = {};

  std::size_t max_connections = 64;  // further ones wait until one is closed
  std::size_t max_target_bytes = 2048;
  std::size_t max_body_bytes = std::size_t{64} << 10U;  // of a POST
  std::chrono::milliseconds request_timeout =
      std::chrono::seconds(10);  // until the headers are complete; as long for a body
  std::chrono::milliseconds idle_timeout = std::chrono::seconds(5);    // between two requests of a connection
  std::chrono::milliseconds write_timeout = std::chrono::seconds(30);  // until the client has accepted 64 KiB
  std::chrono::milliseconds keep_alive = std::chrono::seconds(10);     // between events of a stream; then sends "alive"
};

// Belongs to the thread that makes it, of which it is the only event loop of kj. Headers of a request have at most 64
// KiB; bodies are read of POSTs only.
class Server {
 public:
  // Must not throw. An exception is answered with status 500.
  using Handler = std::function<Response(const Request&)>;

  // Listens. Throws InvalidArgument if the address is none of these two, and EngineError, naming the port and what to
  // do, if it is in use.
  Server(ServerOptions options, Handler handler);
  ~Server();

  std::uint16_t port() const;

  // Serves until SIGINT, SIGTERM or SIGHUP, unless the program ignored it when the server was made; returns the signal.
  // Connections are then closed, whatever they do.
  int run();

  // Has all streams ask their EventSource again, and all that wait their PendingResponse. Any thread may call it.
  void wake();

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace cadre::http
