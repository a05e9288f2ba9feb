// Access tokens of OAuth, which Google and Azure want with each request: fetched, and kept until shortly before they
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

// Returns when a token is taken to expire that does not say so.
std::chrono::system_clock::time_point expiry_unless_said();
// Reads the answer of a token service: {"access_token": ..., "expires_in": seconds}. Throws StorageFault where it says
// no.
AccessToken token_of(const HttpAnswer& answer, const std::string& url);
// The same, asked with the fields of a form.
AccessToken ask_for_token(const std::string& url, const std::vector<std::pair<std::string, std::string>>& form);

// Any thread.
class AccessTokens {
 public:
  // `fetch` throws StorageFault where there is none to be had.
  explicit AccessTokens(std::function<AccessToken()> fetch) : fetch_(std::move(fetch)) {}

  std::string get();
  // Forgets the one that is kept: it was not accepted.
  void renew();

 private:
  const std::function<AccessToken()> fetch_;
  std::mutex mutex_;
  AccessToken token_;
};

// Returns the line of a request to a URL that carries one. Throws StorageFault where the URL has no TLS.
std::string header_with_token(AccessTokens& tokens, const std::string& url);

}  // namespace cadre::storage
