// Bytes of a URL that would mean something else there: "%" and two hexadecimal digits.
#pragma once

#include <string>
#include <string_view>

namespace cadre::base {

// All but letters and digits of ASCII, -._~ and the characters of `as_they_are`.
std::string percent_encoded(std::string_view text, std::string_view as_they_are = "");
// Leaves a "%" that no two digits follow as it is.
std::string percent_decoded(std::string_view text);

}  // namespace cadre::base
