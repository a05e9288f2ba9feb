// How a service is asked for an object on a condition, which Arrow's file systems do not do, and for its removal, for
// which they send up to eight requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "object_storage/http.h"
#include "storage/storage.h"

namespace cadre::storage {

// A bucket, which Azure calls a container, and where in it the root of a storage is.
struct ObjectPlace {
  std::string bucket = {};
  std::string prefix = {};  // of all keys: empty, or a path with a slash at its end
};
// Reads a path of Arrow's: "bucket/folder".
ObjectPlace place_of(const std::string& root);

enum class ObjectAnswer {
  done,
  missing,   // there is no such object
  other,     // the condition does not hold
  passing,   // the same request may be answered otherwise in a moment
  outdated,  // the credentials are not accepted
  fault,
};

// Any thread. Making a request throws StorageFault where there are no credentials for it.
class ObjectProtocol {
 public:
  virtual ~ObjectProtocol() = default;

  virtual HttpRequest read(const std::string& key) = 0;
  // Answered without the contents.
  virtual HttpRequest look_at(const std::string& key) = 0;
  // Writes where the object has the version `expected`, empty: where there is none.
  virtual HttpRequest write(const std::string& key, std::int64_t size, const std::optional<Version>& expected) = 0;
  virtual HttpRequest remove(const std::string& key) = 0;

  virtual ObjectAnswer meaning_of(const HttpAnswer& answer) const = 0;
  // Reads the version from an answer that says "done".
  virtual Version version_in(const HttpAnswer& answer) const = 0;

  // The next request is made with new credentials. Returns whether there may be some.
  virtual bool renew_credentials() { return false; }
};

}  // namespace cadre::storage
