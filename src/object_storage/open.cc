// The entry point that storage.cc loads: opens the file system of a URI.
#include <arrow/config.h>
#include <arrow/filesystem/filesystem.h>
#include <arrow/filesystem/s3fs.h>
#include <arrow/util/config.h>
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "object_storage/azure_credentials.h"
#include "object_storage/azure_file_system.h"
#include "object_storage/azure_protocol.h"
#include "object_storage/conditional_storage.h"
#include "object_storage/faults.h"
#include "object_storage/google_protocol.h"
#include "object_storage/object_storage.h"
#include "object_storage/s3.h"
#include "object_storage/s3_protocol.h"
#include "storage/arrow_module.h"
#include "storage/module.h"

namespace cadre::storage {
namespace {

// Three quick attempts for each request; longer retries are up to the caller.
class QuickRetries final : public arrow::fs::S3RetryStrategy {
 public:
  bool ShouldRetry(const AWSErrorDetail& error, std::int64_t attempted) override {
    return error.should_retry && attempted + 1 < 3;
  }
  std::int64_t CalculateDelayBeforeNextRetry(const AWSErrorDetail&, std::int64_t attempted) override {
    return 100 << (2 * attempted);  // ms
  }
};

[[noreturn]] void refuse(const Uri& uri, const std::string& error) {
  const std::string reason = without_secrets(error);
  const Diagnosis diagnosis = diagnose(reason, uri.location);
  if (diagnosis.kind != StorageFault::Kind::lasting)
    throw StorageFault(diagnosis.kind, fmt::format("cannot use {}: {}; {}", shown(uri), reason, diagnosis.advice));
  throw InvalidArgument(fmt::format("cannot use {}: {}", shown(uri), reason));
}

template <class T>
T accepted(arrow::Result<T> result, const Uri& uri) {
  if (!result.ok()) refuse(uri, result.status().message());
  return *std::move(result);
}

std::unique_ptr<Storage> open_s3(const Uri& uri) {
  load_s3();
  arrow::fs::FileSystemFactoryOptions options;
  options.emplace_back("retry_strategy", std::shared_ptr<arrow::fs::S3RetryStrategy>(new QuickRetries));
  std::string root;
  const auto made = arrow::fs::FileSystemFromUriAndOptions(to_s3_uri(uri), options, &root);
  finish_s3_at_exit(made.ok());  // S3 is initialised even if it refuses the URI
  const auto file_system = std::static_pointer_cast<arrow::fs::S3FileSystem>(accepted(made, uri));
  return std::make_unique<ConditionalStorage>(uri, file_system, root, s3_protocol(*file_system, root));
}

std::unique_ptr<Storage> open_google(Uri uri) {
  if (option(uri, "retry_limit_seconds").empty())
    uri.query += (uri.query.empty() ? "" : "&") + std::string("retry_limit_seconds=10");  // instead of 15 minutes
  std::string root;
  const auto file_system = accepted(arrow::fs::FileSystemFromUri(to_string(uri), &root), uri);
  return std::make_unique<ConditionalStorage>(uri, file_system, root, google_protocol(uri, root));
}

#ifdef ARROW_AZURE
std::unique_ptr<Storage> open_azure(const Uri& uri) {
  std::string root;
  const auto file_system = accepted(azure_file_system(uri, &root), uri);
  const std::string account = file_system->options().account_name;
  return std::make_unique<ConditionalStorage>(
      uri, file_system, root,
      azure_protocol(account, file_system->options().AccountBlobUrl(account), root, azure_credentials(uri, account)));
}
#endif

// Throws InvalidArgument if this library was compiled for another version of Arrow than the one that was loaded with
// it.
void check_arrow_version(const Uri& uri) {
  const std::string& loaded = arrow::GetBuildInfo().version_string;
  if (loaded != ARROW_VERSION_STRING)
    throw InvalidArgument(fmt::format("{} needs Arrow {}, and {} was found, whose binary interface is another one: {}",
                                      shown(uri), ARROW_VERSION_STRING, loaded, storage::how_to_get_arrow()));
}

std::unique_ptr<Storage> open(const Uri& uri) {
  check_arrow_version(uri);
  if (uri.scheme == "s3") return open_s3(uri);
  if (uri.scheme == "gs") return open_google(uri);
#ifdef ARROW_AZURE
  if (uri.scheme == "abfs") return open_azure(uri);
#endif
  std::string root;
  const auto file_system = accepted(arrow::fs::FileSystemFromUri(to_string(uri), &root), uri);
  return std::make_unique<ObjectStorage>(uri, file_system, root);
}

}  // namespace
}  // namespace cadre::storage

// Looked up by name, see storage/module.h.
extern "C" __attribute__((visibility("default"))) cadre::storage::Storage* cadre_open_object_storage(
    const cadre::storage::Uri& uri) {
  try {
    return cadre::storage::open(uri).release();
  } catch (const cadre::Error&) {
    throw;
  } catch (const std::exception& error) {  // from Azure's library
    cadre::storage::refuse(uri, error.what());
  }
}
