// UTF-8, for formats that refuse anything else.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cadre::base {

// The length in bytes of the well-formed sequence at the beginning of `text`, 1 to 4; 0 where there is none or no text.
std::size_t utf8_sequence_length(std::string_view text);

// Whether `text` is well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text);

// `text` with every byte that belongs to no well-formed sequence replaced by U+FFFD.
std::string to_utf8(std::string_view text);

}  // namespace cadre::base
