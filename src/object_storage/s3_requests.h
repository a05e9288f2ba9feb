// The requests to S3 that Arrow's file system does not make: those on a condition.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "storage/copy.h"
#include "storage/storage.h"

namespace cadre::storage {

// A bucket: its server, and how to ask that for it.
struct S3Bucket {
  std::string endpoint = {};  // with its scheme: "https://s3.eu-central-1.amazonaws.com"
  std::string name = {};
  std::string region = {};
  bool is_in_host_name = false;  // https://<name>.s3..., instead of below the endpoint
};

struct S3Credentials {
  std::string access_key = {};
  std::string secret_key = {};
  std::string session_token = {};  // empty: none
};

// An object of a moment.
struct S3Object {
  std::string bytes = {};  // empty of HEAD
  std::string etag = {};
};

// One request each, tried three times where the server is busy or cannot be reached. Any thread. Throws StorageFault.
class S3Requests {
 public:
  explicit S3Requests(S3Bucket bucket) : bucket_(std::move(bucket)) {}

  // Empty where there is none.
  std::optional<S3Object> get(const std::string& key, const S3Credentials& credentials) const;
  std::optional<S3Object> head(const std::string& key, const S3Credentials& credentials) const;
  // Writes the object where it has the ETag `expected`, empty: where there is none. Returns its new ETag, or nothing
  // where the condition does not hold.
  std::optional<std::string> put(const std::string& key, std::string_view bytes,
                                 const std::optional<std::string>& expected, const S3Credentials& credentials) const;
  // The same with a local file.
  std::optional<std::string> put_file(const std::string& key, const std::filesystem::path& file,
                                      const std::optional<std::string>& expected,
                                      const S3Credentials& credentials) const;

  std::string url_of(const std::string& key) const;

 private:
  S3Bucket bucket_;
};

}  // namespace cadre::storage
