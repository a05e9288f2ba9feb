// An object storage that can be asked on a condition: Arrow's file system, and beside it requests of its protocol.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "object_storage/object_protocol.h"
#include "object_storage/object_storage.h"

namespace cadre::storage {

class ConditionalStorage final : public ObjectStorage {
 public:
  ConditionalStorage(Uri uri, std::shared_ptr<arrow::fs::FileSystem> file_system, const std::string& root,
                     std::unique_ptr<ObjectProtocol> protocol);

  // Tries it: some servers, and older versions of most, ignore conditions.
  bool has_conditional_writes() override;
  std::optional<VersionedBytes> read_versioned(const std::string& name) override;
  std::optional<Version> version_of(const std::string& name) override;
  std::optional<Version> write_if(const std::string& name, std::string_view bytes,
                                  const std::optional<Version>& expected) override;
  std::optional<Version> upload_if(const std::filesystem::path& file, const std::string& name,
                                   const std::optional<Version>& expected) override;
  // In one request, where Arrow sends several and leaves marks of folders.
  void remove(const std::string& name) override;

 private:
  std::string key(const std::string& name) const { return place_.prefix + name; }
  // Sends the request that `make` makes, until its answer does not change any more. Returns nothing where there is no
  // such object, and where the condition does not hold.
  std::optional<HttpAnswer> ask(const char* doing, const std::string& name, const std::function<HttpRequest()>& make,
                                const std::function<HttpBody()>& body = {});

  ObjectPlace place_;
  std::unique_ptr<ObjectProtocol> protocol_;
};

}  // namespace cadre::storage
