#include "object_storage/s3_storage.h"

#include <fmt/format.h>

#include <cstdlib>
#include <random>

namespace cadre::storage {
namespace fs = std::filesystem;
namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Returns the server that Arrow asks.
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

// `root` is "bucket/path".
S3Bucket bucket_of(const arrow::fs::S3FileSystem& file_system, const std::string& root) {
  const arrow::fs::S3Options options = file_system.options();
  S3Bucket bucket{.name = root.substr(0, root.find('/')), .region = file_system.region()};
  if (bucket.region.empty()) bucket.region = "us-east-1";
  bucket.endpoint = endpoint_of(options, bucket.region);
  // Certificates are for names without further dots.
  bucket.is_in_host_name =
      (!has_own_endpoint(options) || options.force_virtual_addressing) && bucket.name.find('.') == std::string::npos;
  return bucket;
}

std::string prefix_of(std::string root) {
  const std::size_t slash = root.find('/');
  root = slash == std::string::npos ? "" : root.substr(slash + 1);
  while (root.ends_with('/')) root.pop_back();
  return root.empty() ? root : root + "/";
}

}  // namespace

S3Storage::S3Storage(Uri uri, const std::shared_ptr<arrow::fs::S3FileSystem>& file_system, const std::string& root)
    : ObjectStorage(std::move(uri), file_system, root),
      options_(file_system->options()),
      prefix_(prefix_of(root)),
      requests_(bucket_of(*file_system, root)) {}

std::string S3Storage::key(const std::string& name) const { return prefix_ + name; }

// Anew for each request: they may be renewed meanwhile.
S3Credentials S3Storage::credentials() const {
  return {.access_key = options_.GetAccessKey(),
          .secret_key = options_.GetSecretKey(),
          .session_token = options_.GetSessionToken()};
}

bool S3Storage::has_conditional_writes() {
  const std::string name = fmt::format(".cadre_trial_{:08x}", std::random_device()());
  bool is_refused = false;
  try {
    const auto version = write_if(name, "1", std::nullopt);
    is_refused = version && !write_if(name, "2", std::nullopt) && !write_if(name, "3", "\"0123456789abcdef\"") &&
                 read(name) == "1" && write_if(name, "4", version) && read(name) == "4";
  } catch (const StorageFault& fault) {
    if (fault.kind() != StorageFault::Kind::lasting) throw;  // 501: not implemented
  }
  remove(name);
  return is_refused;
}

std::optional<VersionedBytes> S3Storage::read_versioned(const std::string& name) {
  auto object = requests_.get(key(name), credentials());
  if (!object) return std::nullopt;
  return VersionedBytes{std::move(object->bytes), std::move(object->etag)};
}

std::optional<Version> S3Storage::version_of(const std::string& name) {
  const auto object = requests_.head(key(name), credentials());
  return object ? std::optional(object->etag) : std::nullopt;
}

std::optional<Version> S3Storage::write_if(const std::string& name, std::string_view bytes,
                                           const std::optional<Version>& expected) {
  return requests_.put(key(name), bytes, expected, credentials());
}

std::optional<Version> S3Storage::upload_if(const fs::path& file, const std::string& name,
                                            const std::optional<Version>& expected) {
  return requests_.put_file(key(name), file, expected, credentials());
}

}  // namespace cadre::storage
