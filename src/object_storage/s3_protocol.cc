#include "object_storage/s3_protocol.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "base/percent_encoding.h"
#include "object_storage/environment.h"

namespace cadre::storage {
namespace {

// Returns the URL of the server that Arrow uses.
std::string endpoint_of(const arrow::fs::S3Options& options, const std::string& region) {
  std::string endpoint = options.endpoint_override;
  if (endpoint.empty()) endpoint = environment("AWS_ENDPOINT_URL_S3");
  if (endpoint.empty()) endpoint = environment("AWS_ENDPOINT_URL");
  if (endpoint.empty()) endpoint = fmt::format("s3.{}.amazonaws.com{}", region, region.starts_with("cn-") ? ".cn" : "");
  while (endpoint.ends_with('/')) endpoint.pop_back();
  return endpoint.find("://") == std::string::npos ? options.scheme + "://" + endpoint : endpoint;
}

bool has_own_endpoint(const arrow::fs::S3Options& options) {
  return !options.endpoint_override.empty() || !environment("AWS_ENDPOINT_URL_S3").empty() ||
         !environment("AWS_ENDPOINT_URL").empty();
}

// Returns the URL prefix of a bucket's keys.
std::string url_of(const arrow::fs::S3Options& options, const std::string& region, const std::string& bucket) {
  const std::string endpoint = endpoint_of(options, region);
  // Wildcard certificates do not cover bucket names with dots.
  const bool is_in_host_name =
      (!has_own_endpoint(options) || options.force_virtual_addressing) && bucket.find('.') == std::string::npos;
  if (!is_in_host_name) return fmt::format("{}/{}/", endpoint, bucket);
  const std::size_t host = endpoint.find("://") + 3;
  return fmt::format("{}{}.{}/", endpoint.substr(0, host), bucket, endpoint.substr(host));
}

class S3Protocol final : public ObjectProtocol {
 public:
  S3Protocol(arrow::fs::S3Options options, std::string region, const std::string& bucket)
      : options_(std::move(options)), region_(std::move(region)), url_(url_of(options_, region_, bucket)) {}

  HttpRequest read(const std::string& key) override { return request("GET", key); }
  HttpRequest look_at(const std::string& key) override { return request("HEAD", key); }
  HttpRequest write(const std::string& key, std::int64_t, const std::optional<Version>& expected) override {
    HttpRequest made = request("PUT", key);
    made.headers.push_back(expected ? "If-Match: " + *expected : "If-None-Match: *");
    return made;
  }
  HttpRequest remove(const std::string& key) override { return request("DELETE", key); }

  // A missing object (404, also for HEAD) and a failed condition (412) are recognised by their status alone.
  ObjectAnswer meaning_of(const HttpAnswer& answer) const override {
    if (answer.status == 200 || answer.status == 204) return ObjectAnswer::done;
    if (answer.status == 404 && answer.body.find("NoSuchBucket") == answer.body.npos) return ObjectAnswer::missing;
    if (answer.status == 412) return ObjectAnswer::other;
    // 409: another request is writing the object.
    return may_pass(answer) || answer.status == 409 ? ObjectAnswer::passing : ObjectAnswer::fault;
  }
  Version version_in(const HttpAnswer& answer) const override { return answer.header("etag"); }

 private:
  // Makes a request with current credentials, which may have been renewed.
  HttpRequest request(const char* method, const std::string& key) const {
    // libcurl does not sign streamed contents; TLS protects them.
    HttpRequest made{.method = method,
                     .url = url_ + base::percent_encoded(key, "/"),
                     .headers = {"x-amz-content-sha256: UNSIGNED-PAYLOAD"}};
    const std::string access_key = options_.GetAccessKey();
    if (!access_key.empty())
      made.signature = {.region = region_, .access_key = access_key, .secret_key = options_.GetSecretKey()};
    if (const std::string token = options_.GetSessionToken(); !token.empty())
      made.headers.push_back("x-amz-security-token: " + token);
    return made;
  }

  arrow::fs::S3Options options_;
  std::string region_;
  std::string url_;  // ends with a slash
};

}  // namespace

std::unique_ptr<ObjectProtocol> s3_protocol(const arrow::fs::S3FileSystem& file_system, const std::string& root) {
  const std::string region = file_system.region();
  return std::make_unique<S3Protocol>(file_system.options(), region.empty() ? "us-east-1" : region,
                                      place_of(root).bucket);
}

}  // namespace cadre::storage
