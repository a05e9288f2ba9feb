#include "object_storage/azure_protocol.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/percent_encoding.h"
#include "object_storage/azure_tokens.h"
#include "object_storage/signatures.h"

namespace cadre::storage {
namespace {

using Kind = AzureCredentials::Kind;

// Returns the value of one of the request's headers.
std::string value_of(const HttpRequest& request, std::string_view name) {
  for (const std::string& line : request.headers) {
    if (line.starts_with(name) && line.substr(name.size()).starts_with(": ")) return line.substr(name.size() + 2);
  }
  return {};
}

// https://learn.microsoft.com/en-us/rest/api/storageservices/authorize-with-shared-key
std::string text_to_sign(const HttpRequest& request, std::int64_t size, const std::string& account) {
  std::vector<std::string> own;  // headers of Azure, with lower-case names
  for (const std::string& line : request.headers) {
    if (line.starts_with("x-ms-")) own.push_back(line);
  }
  std::ranges::sort(own);
  std::string text =
      fmt::format("{}\n\n\n{}\n\n\n\n\n{}\n{}\n\n\n", request.method, size == 0 ? "" : std::to_string(size),
                  value_of(request, "If-Match"), value_of(request, "If-None-Match"));
  for (const std::string& line : own) {
    const std::size_t colon = line.find(": ");
    text += line.substr(0, colon) + ":" + line.substr(colon + 2) + "\n";
  }
  const std::size_t path = request.url.find('/', request.url.find("://") + 3);
  return text + "/" + account + request.url.substr(path);
}

class AzureProtocol final : public ObjectProtocol {
 public:
  AzureProtocol(std::string account, std::string container_url, AzureCredentials credentials)
      : account_(std::move(account)), container_url_(std::move(container_url)), credentials_(std::move(credentials)) {}

  HttpRequest read(const std::string& key) override { return authorized(request("GET", key), 0); }
  HttpRequest look_at(const std::string& key) override { return authorized(request("HEAD", key), 0); }
  HttpRequest write(const std::string& key, std::int64_t size, const std::optional<Version>& expected) override {
    HttpRequest made = request("PUT", key);
    made.headers.push_back("x-ms-blob-type: BlockBlob");
    made.headers.push_back(expected ? "If-Match: " + *expected : "If-None-Match: *");
    return authorized(std::move(made), size);
  }
  HttpRequest remove(const std::string& key) override { return authorized(request("DELETE", key), 0); }

  ObjectAnswer meaning_of(const HttpAnswer& answer) const override {
    const std::string code = answer.header("x-ms-error-code");
    if (answer.status >= 200 && answer.status <= 202) return ObjectAnswer::done;
    if (answer.status == 404 && code != "ContainerNotFound") return ObjectAnswer::missing;
    if (answer.status == 412 || (answer.status == 409 && code == "BlobAlreadyExists")) return ObjectAnswer::other;
    if (answer.status == 401) return ObjectAnswer::outdated;
    return may_pass(answer) ? ObjectAnswer::passing : ObjectAnswer::fault;
  }
  Version version_in(const HttpAnswer& answer) const override { return answer.header("etag"); }
  bool renew_credentials() override {
    tokens_.renew();
    return uses_tokens();
  }

 private:
  bool uses_tokens() const {
    return credentials_.kind != Kind::key && credentials_.kind != Kind::signature &&
           credentials_.kind != Kind::anonymous;
  }
  HttpRequest request(const char* method, const std::string& key) const {
    const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
    return {.method = method,
            .url = container_url_ + base::percent_encoded(key, "/"),
            .headers = {fmt::format("x-ms-date: {:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(now)),
                        "x-ms-version: 2021-08-06", "Content-Type:"}};
  }
  HttpRequest authorized(HttpRequest made, std::int64_t size) {
    if (credentials_.kind == Kind::signature) {
      made.url += "?" + credentials_.secret;
    } else if (credentials_.kind == Kind::key) {
      const std::string signature = hmac_sha256(from_base64(credentials_.secret), text_to_sign(made, size, account_));
      made.headers.push_back(fmt::format("Authorization: SharedKey {}:{}", account_, base64(signature)));
    } else if (uses_tokens()) {
      made.headers.push_back(header_with_token(tokens_, made.url));
    }
    return made;
  }

  std::string account_;
  std::string container_url_;  // ends with a slash
  AzureCredentials credentials_;
  AccessTokens tokens_{[this] { return azure_access_token(credentials_); }};
};

}  // namespace

std::unique_ptr<ObjectProtocol> azure_protocol(const std::string& account, const std::string& account_url,
                                               const std::string& root, AzureCredentials credentials) {
  return std::make_unique<AzureProtocol>(account, fmt::format("{}{}/", account_url, place_of(root).bucket),
                                         std::move(credentials));
}

}  // namespace cadre::storage
