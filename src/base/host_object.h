// Objects of a host in configs: a dictionary of a key that begins with "$", from which the host makes the object,
// "repr", its text, and "value" if it has a plain value, too (docs/formats.md).
#pragma once

#include "cadre/value.h"

namespace cadre::base {

// Returns the text of an object of a host; nullptr: the value is none. The pointer is valid as long as the value.
const Value* text_of_host_object(const Value& value);

// Returns the value with each object of a host in it replaced by its plain value or, if it has none, by its text.
Value without_host_objects(const Value& value);

}  // namespace cadre::base
