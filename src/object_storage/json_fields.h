// Fields of the JSON objects that services answer with, and that hold credentials.
#pragma once

#include <string>
#include <string_view>

#include "cadre/value.h"

namespace cadre::storage {

// Throws StorageFault where the text is no JSON object; `source` names it.
Value parse_fields(std::string_view text, const std::string& source);
// A text, or an integer as one; empty where there is no such field.
std::string field(const Value& object, std::string_view name);

}  // namespace cadre::storage
