// An object storage with conditional writes: Arrow's file system, and requests of the service's protocol beside it.
#pragma once

#include <atomic>
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

  // Tests conditional writes: some servers, and older versions of most, ignore the conditions. If requests with
  // conditions always fail, this storage makes no more of them: it checks, then writes, as storages without such
  // requests do.
  bool has_conditional_writes() override;
  std::optional<VersionedBytes> read_versioned(const std::string& name) override;
  std::optional<Version> version_of(const std::string& name) override;
  std::optional<Version> write_if(const std::string& name, std::string_view bytes,
                                  const std::optional<Version>& expected) override;
  std::optional<Version> upload_if(const FileToUpload& file, const std::string& name,
                                   const std::optional<Version>& expected) override;
  // Removes with one request; Arrow sends several and leaves folder markers.
  void remove(const std::string& name) override;

 private:
  std::string key(const std::string& name) const { return place_.prefix + name; }
  // Sends the request made by `make`, with retries and renewed credentials where they may help. Returns nothing if
  // there is no such object or the condition does not hold. Throws StorageFault on failure.
  std::optional<HttpAnswer> ask(const char* doing, const std::string& name, const std::function<HttpRequest()>& make,
                                const std::function<HttpBody()>& body = {});

  ObjectPlace place_;
  std::unique_ptr<ObjectProtocol> protocol_;
  std::atomic<bool> uses_protocol_ = true;
};

}  // namespace cadre::storage
