// HTTP requests by libcurl, for operations that Arrow's file systems lack.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cadre::storage {

struct HttpRequest {
  // The key with which libcurl signs the request for S3.
  struct AwsSignature {
    std::string region = {};
    std::string access_key = {};
    std::string secret_key = {};
  };

  std::string method = "GET";
  std::string url = {};
  std::vector<std::string> headers = {};  // "name: value"
  std::optional<AwsSignature> signature = {};
};

// The body of a request.
struct HttpBody {
  std::int64_t size = 0;                              // bytes
  std::function<std::string_view()> next_piece = {};  // empty at the end
};

struct HttpAnswer {
  long status = 0;  // HTTP status; 0: no response
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  // names in lower case
  std::string fault = {};                                         // error of the transport; empty: none
  bool has_timed_out = false;

  std::string header(std::string_view name) const;  // `name` in lower case; returns empty if there is none
};

// Sends one request; may be called from any thread. Throws StorageFault if libcurl cannot send such a request, and
// rethrows exceptions of the body.
HttpAnswer send(const HttpRequest& request, HttpBody body = {});

// Calls `attempt`, which sends a request once, up to three times with pauses, until `may_pass` returns false for the
// response.
HttpAnswer send_with_attempts(const std::function<HttpAnswer()>& attempt,
                              const std::function<bool(const HttpAnswer&)>& may_pass);
// Returns true if the server is busy or cannot be reached. A request that timed out is not retried here: that is up to
// the caller's own retry policy.
bool may_pass(const HttpAnswer& answer);

// Throws StorageFault with the error and advice. `what`: the URI that the request was about.
[[noreturn]] void throw_fault(const HttpAnswer& answer, std::string_view doing, std::string_view what);

}  // namespace cadre::storage
