// UTF-8, for formats that accept no other encoding.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cadre::base {

// Returns the length in bytes, 1 to 4, of the well-formed sequence at the beginning of `text`; 0 if there is none.
std::size_t utf8_sequence_length(std::string_view text);

// Returns the code point of one well-formed sequence; of a single byte, whatever it is, its value.
char32_t utf8_code_point(std::string_view sequence);

// Returns true if `text` is well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text);

// Returns `text` with every byte outside well-formed sequences replaced by U+FFFD.
std::string to_utf8(std::string_view text);

}  // namespace cadre::base
