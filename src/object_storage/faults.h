// Classification of storage errors.
#pragma once

#include <string>
#include <string_view>

#include "storage/storage.h"

namespace cadre::storage {

struct Diagnosis {
  StorageFault::Kind kind = StorageFault::Kind::lasting;
  std::string advice = {};  // for the user; may be empty
};
// Classifies an error by its text, the only information that Arrow passes on. `location`: the path or URI that the
// request was about; the names in it say nothing about the error.
Diagnosis diagnose(std::string_view error, std::string_view location);

// Returns an error text without secrets: URLs in it may contain signatures that grant access.
std::string without_secrets(std::string_view error);

}  // namespace cadre::storage
