// What storage.cc loads: the file system of a URI.
#include <arrow/filesystem/filesystem.h>
#include <arrow/filesystem/s3fs.h>
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "object_storage/faults.h"
#include "object_storage/object_storage.h"
#include "object_storage/s3.h"
#include "object_storage/s3_storage.h"
#include "storage/module.h"

namespace cadre::storage {
namespace {

// Three quick attempts for each request; who uses the storage has the patience for more.
class QuickRetries final : public arrow::fs::S3RetryStrategy {
 public:
  bool ShouldRetry(const AWSErrorDetail& error, std::int64_t attempted) override {
    return error.should_retry && attempted + 1 < 3;
  }
  std::int64_t CalculateDelayBeforeNextRetry(const AWSErrorDetail&, std::int64_t attempted) override {
    return 100 << (2 * attempted);  // ms
  }
};

// What the user has not said otherwise.
std::string with_defaults(Uri uri) {
  const auto add = [&](const std::string& option, const char* value) {
    if (uri.query.find(option + "=") == uri.query.npos)
      uri.query += (uri.query.empty() ? "" : "&") + option + "=" + value;
  };
  if (uri.scheme == "s3") return to_s3_uri(std::move(uri));
  if (uri.scheme == "gs" || uri.scheme == "gcs") add("retry_limit_seconds", "10");  // instead of 15 minutes
  return to_string(uri);
}

std::unique_ptr<Storage> open(const Uri& uri) {
  const bool is_s3 = uri.scheme == "s3";
  if (is_s3) load_s3();
  arrow::fs::FileSystemFactoryOptions options;
  if (is_s3) options.emplace_back("retry_strategy", std::shared_ptr<arrow::fs::S3RetryStrategy>(new QuickRetries));
  std::string root;
  const auto file_system = arrow::fs::FileSystemFromUriAndOptions(with_defaults(uri), options, &root);
  if (is_s3) finish_s3_at_exit();  // it has begun also where it refuses the URI
  if (!file_system.ok()) {
    const std::string& reason = file_system.status().message();
    const Diagnosis diagnosis = diagnose(reason);
    if (diagnosis.kind != StorageFault::Kind::lasting)
      throw StorageFault(diagnosis.kind, fmt::format("cannot use {}: {}; {}", shown(uri), reason, diagnosis.advice));
    throw InvalidArgument(fmt::format("cannot use {}: {}", shown(uri), reason));
  }
  if (is_s3)
    return std::make_unique<S3Storage>(uri, std::static_pointer_cast<arrow::fs::S3FileSystem>(*file_system), root);
  return std::make_unique<ObjectStorage>(uri, *file_system, root);
}

}  // namespace
}  // namespace cadre::storage

// Found by its name, see storage/module.h.
extern "C" __attribute__((visibility("default"))) cadre::storage::Storage* cadre_open_object_storage(
    const cadre::storage::Uri& uri) {
  return cadre::storage::open(uri).release();
}
