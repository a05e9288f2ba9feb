// Text in SVG pictures, from any bytes.
#pragma once

#include <string>
#include <string_view>

namespace cadre::run::svg {

// Escapes text for the content of an element or of an attribute in double quotes. Replaces invalid UTF-8, characters
// that XML 1.0 does not have, line ends and tabs by U+FFFD.
std::string escaped(std::string_view text);

// Returns an upper bound of the text's width in the usual sans-serif and monospaced fonts (DejaVu, Liberation, Noto,
// Helvetica, Verdana), in the unit of the font size: the font with which a picture is shown is unknown.
double width_of(std::string_view text, double font_size);

// Returns the beginning of a text that fits into a width, as UTF-8, with an ellipsis if the text is cut.
std::string shortened(std::string_view text, double width, double font_size);

}  // namespace cadre::run::svg
