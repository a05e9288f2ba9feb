#include "object_storage/google_protocol.h"

#include <fmt/format.h>

#include <utility>

#include "base/percent_encoding.h"
#include "object_storage/access_token.h"
#include "object_storage/environment.h"
#include "object_storage/google_credentials.h"
#include "object_storage/json_fields.h"

namespace cadre::storage {
namespace {

class GoogleProtocol final : public ObjectProtocol {
 public:
  GoogleProtocol(std::string endpoint, bool is_anonymous, const std::string& bucket)
      : endpoint_(std::move(endpoint)),
        objects_(fmt::format("/storage/v1/b/{}/o", base::percent_encoded(bucket))),
        is_anonymous_(is_anonymous) {}

  HttpRequest read(const std::string& key) override { return request("GET", object(key) + "?alt=media"); }
  HttpRequest look_at(const std::string& key) override { return request("GET", object(key) + "?fields=generation"); }
  HttpRequest write(const std::string& key, std::int64_t, const std::optional<Version>& expected) override {
    HttpRequest made =
        request("POST", fmt::format("/upload{}?uploadType=media&name={}&ifGenerationMatch={}", objects_,
                                    base::percent_encoded(key), expected ? base::percent_encoded(*expected) : "0"));
    made.headers.push_back("Content-Type: application/octet-stream");
    return made;
  }
  HttpRequest remove(const std::string& key) override { return request("DELETE", object(key)); }

  ObjectAnswer meaning_of(const HttpAnswer& answer) const override {
    if (answer.status == 200 || answer.status == 204) return ObjectAnswer::done;
    if (answer.status == 404 && answer.body.find("bucket does not exist") == answer.body.npos)
      return ObjectAnswer::missing;
    if (answer.status == 412) return ObjectAnswer::other;
    if (answer.status == 401) return ObjectAnswer::outdated;
    return may_pass(answer) ? ObjectAnswer::passing : ObjectAnswer::fault;
  }
  Version version_in(const HttpAnswer& answer) const override {
    const std::string generation = answer.header("x-goog-generation");  // only in a response with contents
    return generation.empty() ? field(parse_fields(answer.body, "Google's answer"), "generation") : generation;
  }
  bool renew_credentials() override {
    tokens_.renew();
    return !is_anonymous_;
  }

 private:
  std::string object(const std::string& key) const { return objects_ + "/" + base::percent_encoded(key); }
  HttpRequest request(const char* method, const std::string& path) {
    HttpRequest made{.method = method, .url = endpoint_ + path};
    if (!is_anonymous_) made.headers.push_back(header_with_token(tokens_, made.url));
    return made;
  }

  std::string endpoint_;
  std::string objects_;  // path of the bucket's objects
  bool is_anonymous_;
  AccessTokens tokens_{google_access_token};
};

}  // namespace

std::unique_ptr<ObjectProtocol> google_protocol(const Uri& uri, const std::string& root) {
  const std::string server = option(uri, "endpoint_override");
  std::string scheme = option(uri, "scheme");
  if (scheme.empty()) scheme = "https";
  std::string endpoint = "https://storage.googleapis.com";
  if (!server.empty()) {
    endpoint = scheme + "://" + server;
  } else if (const std::string emulator = environment("CLOUD_STORAGE_EMULATOR_ENDPOINT"); !emulator.empty()) {
    endpoint = emulator;
  }
  const bool is_anonymous = uri.location.starts_with("anonymous@");
  return std::make_unique<GoogleProtocol>(endpoint, is_anonymous, place_of(root).bucket);
}

}  // namespace cadre::storage
