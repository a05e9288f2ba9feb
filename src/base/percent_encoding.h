// Percent-encoding of bytes with a special meaning in URLs: "%" and two hexadecimal digits.
#pragma once

#include <string>
#include <string_view>

namespace cadre::base {

// Encodes all bytes except ASCII letters, digits, -._~ and the characters in `as_they_are`.
std::string percent_encoded(std::string_view text, std::string_view as_they_are = "");
// Decodes percent-encoded text. A "%" without two hexadecimal digits after it stays as it is.
std::string percent_decoded(std::string_view text);

}  // namespace cadre::base
