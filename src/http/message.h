// Requests and responses as the server's owner sees them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cadre::http {

enum class Method { get, head, post, other };

struct Request {
  Method method = Method::get;
  std::string target = {};                 // as sent: "/path?query"
  std::string host = {};                   // the header Host; empty: missing
  std::optional<std::string> origin = {};  // the header Origin
  // The header Sec-Fetch-Site, with which a browser says where a request comes from: "same-origin", "cross-site", ...
  std::optional<std::string> fetch_site = {};
  std::string content_type = {};  // the header Content-Type; empty: missing
  std::string body = {};          // of a POST
};

using Headers = std::vector<std::pair<std::string, std::string>>;

// A stream of server-sent events. Used by the server's thread only, and destroyed when the client is gone.
class EventSource {
 public:
  virtual ~EventSource() = default;
  // Returns what is to be sent now, as text/event-stream; empty: nothing until the next Server::wake(). Is called only
  // when all that was returned before has been sent, so a slow client makes no queue.
  virtual std::string next() = 0;
};

class PendingResponse;

struct Response {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body = {};   // empty: none
  Headers headers = {};                           // beside Content-Type, Content-Length and those of ServerOptions
  std::unique_ptr<EventSource> events = {};       // in place of a body
  std::unique_ptr<PendingResponse> pending = {};  // in place of everything else
};

// A response that takes a while. Used by the server's thread only.
class PendingResponse {
 public:
  virtual ~PendingResponse() = default;
  // Returns the response, once; nothing as long as it is not there. Is called again after Server::wake().
  virtual std::optional<Response> next() = 0;
};

}  // namespace cadre::http
