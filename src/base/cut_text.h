// Texts that are cut to a length, between characters of UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace cadre::base {

// Return at most `most` bytes from the beginning or the end of a text, up to three fewer so that no character of UTF-8
// is split. Text in another encoding is cut at that length.
std::string_view first_bytes(std::string_view text, std::size_t most);
std::string_view last_bytes(std::string_view text, std::size_t most);

}  // namespace cadre::base
