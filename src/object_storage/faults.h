// What a storage's error means for whoever meets it.
#pragma once

#include <string>
#include <string_view>

#include "storage/storage.h"

namespace cadre::storage {

struct Diagnosis {
  StorageFault::Kind kind = StorageFault::Kind::lasting;
  std::string advice = {};  // what to do; may be empty
};
// By the text of an error, which is all that Arrow hands on.
Diagnosis diagnose(std::string_view error);

// Returns an error as it may be shown: URLs in it may carry signatures that let everybody in.
std::string without_secrets(std::string_view error);

}  // namespace cadre::storage
