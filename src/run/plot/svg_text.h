// Text in SVG pictures, from any bytes.
#pragma once

#include <string>
#include <string_view>

namespace cadre::run::svg {

// Text as the content of an element or of an attribute in double quotes. What is no UTF-8, or no character of XML 1.0,
// becomes U+FFFD, and so do line ends and tabs.
std::string escaped(std::string_view text);

// About how wide a browser makes text in a font such as Helvetica, in the unit of the font's size.
double width_of(std::string_view text, double font_size);

// The beginning of a text that fits into a width, as UTF-8, with an ellipsis where that is not all of it.
std::string shortened(std::string_view text, double width, double font_size);

}  // namespace cadre::run::svg
