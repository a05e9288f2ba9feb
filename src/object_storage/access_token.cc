#include "object_storage/access_token.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>
#include <utility>

#include "base/percent_encoding.h"
#include "object_storage/json_fields.h"
#include "storage/storage.h"

namespace cadre::storage {
namespace {

constexpr auto kBeforeItExpires = std::chrono::minutes(5);
constexpr std::chrono::seconds kUnlessSaid = std::chrono::minutes(10);

}  // namespace

std::chrono::system_clock::time_point expiry_unless_said() { return std::chrono::system_clock::now() + kUnlessSaid; }

AccessToken token_of(const HttpAnswer& answer, const std::string& url) {
  if (answer.status != 200) throw_fault(answer, "get an access token from", url);
  const Value fields = parse_fields(answer.body, url);
  const std::string seconds = field(fields, "expires_in");
  AccessToken token{.text = field(fields, "access_token"), .expires = expiry_unless_said()};
  std::int64_t good_for = 0;
  if (std::from_chars(seconds.data(), seconds.data() + seconds.size(), good_for).ec == std::errc())
    token.expires = std::chrono::system_clock::now() + std::chrono::seconds(good_for);
  if (token.text.empty())
    throw StorageFault(StorageFault::Kind::denied, "cannot get an access token from " + url + ": its answer has none");
  return token;
}

AccessToken ask_for_token(const std::string& url, const std::vector<std::pair<std::string, std::string>>& form) {
  std::string body;
  for (const auto& [name, value] : form) body += (body.empty() ? "" : "&") + name + "=" + base::percent_encoded(value);
  const HttpRequest request{
      .method = "POST", .url = url, .headers = {"Content-Type: application/x-www-form-urlencoded"}};
  const HttpAnswer answer = send_with_attempts(
      [&] {
        return send(request,
                    {std::ssize(body), [rest = std::string_view(body)]() mutable { return std::exchange(rest, {}); }});
      },
      may_pass);
  return token_of(answer, url);
}

std::string AccessTokens::get() {
  const std::lock_guard lock(mutex_);
  if (token_.text.empty() || std::chrono::system_clock::now() + kBeforeItExpires > token_.expires) token_ = fetch_();
  return token_.text;
}

void AccessTokens::renew() {
  const std::lock_guard lock(mutex_);
  token_ = {};
}

std::string header_with_token(AccessTokens& tokens, const std::string& url) {
  if (!url.starts_with("https://"))
    throw StorageFault(StorageFault::Kind::lasting,
                       "an access token is not shown to a server without TLS, as in " + url);
  return "Authorization: Bearer " + tokens.get();
}

}  // namespace cadre::storage
