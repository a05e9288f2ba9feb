// SVG pictures. Lengths are pixels; texts may be any bytes.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace cadre::view::svg {

// Escapes text for the content of an element or of an attribute in double quotes. Replaces invalid UTF-8, characters
// that XML 1.0 does not have, line ends and tabs by U+FFFD.
std::string escaped(std::string_view text);

// Returns an upper bound of the text's width in the usual sans-serif and monospaced fonts (DejaVu, Liberation, Noto,
// Helvetica, Verdana), in the unit of the font size: the font with which a picture is shown is unknown.
double width_of(std::string_view text, double font_size);

// Returns the beginning of a text that fits into a width, as UTF-8, with an ellipsis if the text is cut.
std::string shortened(std::string_view text, double width, double font_size);

// Appends formatted text.
template <class... T>
void append(std::string& out, fmt::format_string<T...> format, T&&... values) {
  fmt::format_to(std::back_inserter(out), format, std::forward<T>(values)...);
}

// Returns a coordinate as text with at most one decimal.
std::string pixels(double value);

// Returns a picture of this size, with a title for tooltips and screen readers, around elements.
std::string document(double width, double height, double font_size, std::string_view title, std::string_view elements);

}  // namespace cadre::view::svg
