#include "view/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/utf8.h"

namespace cadre::view::svg {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
constexpr std::string_view kEllipsis = "…";

// Widths of the characters from the space on, in hundredths of the font size: the maximum over DejaVu Sans, Sans Mono
// and Serif, Liberation Sans, FreeSans and Noto Sans.
constexpr std::array<std::uint8_t, 95> kWidths{61,  61, 61, 84, 64, 96, 90, 61,  61, 61, 61, 84, 61, 61,  61, 61,  //
                                               64,  64, 64, 64, 64, 64, 64, 64,  64, 64, 61, 61, 84, 84,  84, 61,  //
                                               102, 73, 74, 77, 81, 73, 70, 80,  88, 61, 61, 75, 67, 103, 88, 82,  //
                                               68,  82, 76, 69, 67, 85, 73, 103, 72, 68, 70, 61, 61, 61,  84, 61,  //
                                               61,  62, 65, 61, 65, 62, 61, 65,  65, 61, 61, 61, 61, 98,  65, 62,  //
                                               65,  65, 61, 61, 61, 65, 61, 86,  61, 61, 61, 64, 61, 64,  84};
constexpr int kWidthOfOthers = 105;  // East Asian characters are square

int width_of(char first_byte) {
  const std::size_t place = static_cast<unsigned char>(first_byte) - std::size_t{' '};
  return place < kWidths.size() ? kWidths[place] : kWidthOfOthers;
}

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0u) != 0x80u; }

std::string_view entity_of(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    default:
      return {};
  }
}

void replace_all(std::string& text, std::string_view what) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos;) text.replace(at, what.size(), kReplacement);
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : base::to_utf8(text)) {
    if (const std::string_view entity = entity_of(c); !entity.empty()) {
      out += entity;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += kReplacement;
    } else {
      out += c;
    }
  }
  replace_all(out, "\xef\xbf\xbe");  // U+FFFE and U+FFFF are not characters of XML
  replace_all(out, "\xef\xbf\xbf");
  return out;
}

double width_of(std::string_view text, double font_size) {
  int width = 0;
  for (const char c : text) {
    if (begins_character(c)) width += width_of(c);
  }
  return width / 100.0 * font_size;
}

std::string shortened(std::string_view text, double width, double font_size) {
  std::string whole = base::to_utf8(text);
  if (width_of(whole, font_size) <= width) return whole;
  const double left = width - width_of(kEllipsis, font_size);
  int used = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (begins_character(whole[i])) used += width_of(whole[i]);
    if (used / 100.0 * font_size > left) {
      whole.resize(i);
      break;
    }
  }
  return whole += kEllipsis;
}

std::string pixels(double value) {
  const double rounded = std::round(value * 10) / 10 + 0.0;  // never "-0"
  return fmt::format("{}", rounded);
}

std::string document(double width, double height, double font_size, std::string_view title, std::string_view elements) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" "
      "font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\" font-size=\"{2}\" fill=\"#222\">\n"
      "<title>{3}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{4}</svg>\n",
      std::ceil(width), std::ceil(height), font_size, escaped(title), elements);
}

}  // namespace cadre::view::svg
