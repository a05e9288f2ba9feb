// Fields of JSON objects in responses of services and in credentials files.
#pragma once

#include <string>
#include <string_view>

#include "cadre/value.h"

namespace cadre::storage {

// Parses a JSON object. Throws StorageFault, naming `source`, if the text is not one.
Value parse_fields(std::string_view text, const std::string& source);
// Returns a string field, or an integer field as text; empty if there is no such field.
std::string field(const Value& object, std::string_view name);

}  // namespace cadre::storage
