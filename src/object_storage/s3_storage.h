// S3: Arrow's file system, and beside it the requests on a condition.
#pragma once

#include <arrow/filesystem/s3fs.h>

#include <memory>
#include <string>

#include "object_storage/object_storage.h"
#include "object_storage/s3_requests.h"

namespace cadre::storage {

class S3Storage final : public ObjectStorage {
 public:
  S3Storage(Uri uri, const std::shared_ptr<arrow::fs::S3FileSystem>& file_system, const std::string& root);

  // Tries it the first time: some servers, and older versions of most, ignore conditions.
  bool has_conditional_writes() override;
  std::optional<VersionedBytes> read_versioned(const std::string& name) override;
  std::optional<Version> version_of(const std::string& name) override;
  std::optional<Version> write_if(const std::string& name, std::string_view bytes,
                                  const std::optional<Version>& expected) override;
  std::optional<Version> upload_if(const std::filesystem::path& file, const std::string& name,
                                   const std::optional<Version>& expected) override;

 private:
  std::string key(const std::string& name) const;
  S3Credentials credentials() const;

  arrow::fs::S3Options options_;
  std::string prefix_;  // of all keys: empty, or a path with a slash at its end
  S3Requests requests_;
};

}  // namespace cadre::storage
