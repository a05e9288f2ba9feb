// JSON text in the layout of Python's json module, both ways: NaN and Infinity tokens, exact 64-bit integers, doubles
// in the shortest form that reads back as the same bits.
#pragma once

#include <string>
#include <string_view>

#include "cadre/value.h"

namespace cadre::base {

// As json.dumps(value) writes it: ", " and ": ", non-ASCII text escaped. A reference is {"$reference": [kind, id]}.
// Bytes of a text that are no UTF-8 are written as the Latin-1 characters of those numbers: all text can be read again.
void append_json(std::string& out, const Value& value);
void append_json(std::string& out, const Dict& entries);
std::string to_json(const Dict& entries);

// As json.dumps(value, indent=2, sort_keys=True) writes it.
std::string to_pretty_json(const Dict& entries);

// As Python's repr(): "0.1", "1e-05", "100.0", "nan", "inf". JSON has NaN and Infinity instead of the last two.
void append_python_float(std::string& out, double value);

// Reads what append_json wrote, and any other JSON. `source` names the text in messages. Throws StorageError with the
// offset for text that is no JSON or no UTF-8, nested deeper than max_value_depth, or with a number that fits neither
// 64 bits nor a double.
Value parse_json(std::string_view text, std::string_view source);

}  // namespace cadre::base
