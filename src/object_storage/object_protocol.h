// The requests of a service for conditional reads and writes, which Arrow's file systems lack, and for removals, for
// which they send up to eight requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "object_storage/http.h"
#include "storage/storage.h"

namespace cadre::storage {

// A bucket (a container in Azure) and the root of a storage in it.
struct ObjectPlace {
  std::string bucket = {};
  std::string prefix = {};  // prefix of all keys: empty, or a path that ends with a slash
};
// Parses a path of Arrow: "bucket/folder".
ObjectPlace place_of(const std::string& root);

enum class ObjectAnswer {
  done,
  missing,   // there is no such object
  other,     // the condition does not hold
  passing,   // a retry of the same request may succeed
  outdated,  // the credentials were rejected
  fault,
};

// The protocol of a service; may be used by any thread. Making a request throws StorageFault if there are no
// credentials for it.
class ObjectProtocol {
 public:
  virtual ~ObjectProtocol() = default;

  virtual HttpRequest read(const std::string& key) = 0;
  // Makes a request for the version only, without the contents.
  virtual HttpRequest look_at(const std::string& key) = 0;
  // Makes a request that writes only if the object has the version `expected`; empty: does not exist.
  virtual HttpRequest write(const std::string& key, std::int64_t size, const std::optional<Version>& expected) = 0;
  virtual HttpRequest remove(const std::string& key) = 0;

  virtual ObjectAnswer meaning_of(const HttpAnswer& answer) const = 0;
  // Returns the version in a response that means `done`.
  virtual Version version_in(const HttpAnswer& answer) const = 0;

  // Makes the next request use new credentials. Returns true if there may be new ones.
  virtual bool renew_credentials() { return false; }
};

}  // namespace cadre::storage
