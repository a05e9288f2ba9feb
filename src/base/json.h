// JSON text in the layout of Python's json module, written and read: NaN and Infinity tokens, exact 64-bit integers,
// doubles in the shortest form that reads back as the same bits.
#pragma once

#include <string>
#include <string_view>

#include "cadre/value.h"

namespace cadre::base {

// Appends JSON like json.dumps(value): ", " and ": ", non-ASCII text escaped. References are {"$reference": [kind,
// id]}. Invalid UTF-8 bytes are written as the Latin-1 characters with the same codes, so all text can be read again.
void append_json(std::string& out, const Value& value);
void append_json(std::string& out, const Dict& entries);
std::string to_json(const Dict& entries);

// Returns JSON like json.dumps(value, indent=2, sort_keys=True).
std::string to_pretty_json(const Dict& entries);

// Appends a double like Python's repr(): "0.1", "1e-05", "100.0", "nan", "inf". JSON has NaN and Infinity instead of
// the last two.
void append_python_float(std::string& out, double value);

// Parses the output of append_json, and any other JSON. `source` names the text in messages. Throws StorageError with
// the offset if the text is not JSON or not UTF-8, is nested deeper than max_value_depth, or has an integer beyond 64
// bits or a number outside the range of a double.
Value parse_json(std::string_view text, std::string_view source);

}  // namespace cadre::base
