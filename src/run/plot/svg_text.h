// Text in SVG pictures, from any bytes.
#pragma once

#include <string>
#include <string_view>

namespace cadre::run::svg {

// Text as the content of an element or of an attribute in double quotes. What is no UTF-8, or no character of XML 1.0,
// becomes U+FFFD, and so do line ends and tabs.
std::string escaped(std::string_view text);

// A width that text does not exceed in the usual fonts without serifs and of one width (DejaVu, Liberation, Noto,
// Helvetica, Verdana), in the unit of the font's size: nobody knows which of them a picture is shown with.
double width_of(std::string_view text, double font_size);

// The beginning of a text that fits into a width, as UTF-8, with an ellipsis where that is not all of it.
std::string shortened(std::string_view text, double width, double font_size);

}  // namespace cadre::run::svg
