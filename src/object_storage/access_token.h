// OAuth access tokens, which Google and Azure require with each request: fetched, and cached until shortly before they
// expire.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "object_storage/http.h"

namespace cadre::storage {

struct AccessToken {
  std::string text = {};
  std::chrono::system_clock::time_point expires = {};
};

// Returns the assumed expiry of a token that has none.
std::chrono::system_clock::time_point expiry_unless_said();
// Parses the response of a token service: {"access_token": ..., "expires_in": seconds}. Throws StorageFault if the
// service refuses.
AccessToken token_of(const HttpAnswer& answer, const std::string& url);
// Requests a token with the fields of a form. Throws StorageFault if the service refuses.
AccessToken ask_for_token(const std::string& url, const std::vector<std::pair<std::string, std::string>>& form);

// A cache for one access token; may be used by any thread.
class AccessTokens {
 public:
  // `fetch` throws StorageFault if it cannot get a token.
  explicit AccessTokens(std::function<AccessToken()> fetch) : fetch_(std::move(fetch)) {}

  std::string get();
  // Drops the cached token, after a server rejected it.
  void renew();

 private:
  const std::function<AccessToken()> fetch_;
  std::mutex mutex_;
  AccessToken token_;
};

// Returns the HTTP header with the token for a request to a URL. Throws StorageFault if the URL is not https.
std::string header_with_token(AccessTokens& tokens, const std::string& url);

}  // namespace cadre::storage
