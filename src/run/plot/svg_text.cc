#include "run/plot/svg_text.h"

#include <algorithm>

#include "base/utf8.h"

namespace cadre::run::svg {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
constexpr std::string_view kEllipsis = "…";

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
  replace_all(out, "\xef\xbf\xbe");  // U+FFFE and U+FFFF are no characters of XML
  replace_all(out, "\xef\xbf\xbf");
  return out;
}

double width_of(std::string_view text, double font_size) {
  return 0.56 * font_size * static_cast<double>(std::ranges::count_if(text, begins_character));
}

std::string shortened(std::string_view text, double width, double font_size) {
  std::string whole = base::to_utf8(text);
  if (width_of(whole, font_size) <= width) return whole;
  const double left = width - width_of(kEllipsis, font_size);
  while (!whole.empty() && width_of(whole, font_size) > left) {
    while (!begins_character(whole.back())) whole.pop_back();
    whole.pop_back();
  }
  return whole += kEllipsis;
}

}  // namespace cadre::run::svg
