// Requests of HTTP by libcurl, for what Arrow's file systems do not ask.
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
  // Has libcurl sign the request for S3 with this key.
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

// The contents that are sent along.
struct HttpBody {
  std::int64_t size = 0;                              // bytes
  std::function<std::string_view()> next_piece = {};  // empty at the end
};

struct HttpAnswer {
  long status = 0;  // of HTTP; 0: there was none
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  // names in small letters
  std::string fault = {};                                         // of the transport; empty: none
  bool has_timed_out = false;

  std::string header(std::string_view name) const;  // in small letters; empty where there is none
};

// Sends one request. Any thread. Throws StorageFault where libcurl cannot send such a request, and what the body
// throws.
HttpAnswer send(const HttpRequest& request, HttpBody body = {});

// Sends one request up to three times, with pauses, while its answer may be another one a moment later. `attempt` sends
// it once.
HttpAnswer send_with_attempts(const std::function<HttpAnswer()>& attempt,
                              const std::function<bool(const HttpAnswer&)>& may_pass);
// The server is busy or cannot be reached. A request that timed out is not sent again: whoever asks has more patience,
// or none.
bool may_pass(const HttpAnswer& answer);

// Throws StorageFault that says what went wrong, and what to do.
[[noreturn]] void throw_fault(const HttpAnswer& answer, std::string_view doing, std::string_view what);

}  // namespace cadre::storage
