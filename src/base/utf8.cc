#include "base/utf8.h"

#include <algorithm>

namespace cadre::base {
namespace {

// Returns the number of leading ASCII bytes, which is nearly all text.
std::size_t ascii_length(std::string_view text) {
  const auto other = std::ranges::find_if(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  return static_cast<std::size_t>(other - text.begin());
}

}  // namespace

std::size_t utf8_sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  if (text.empty()) return 0;
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return 0;
  }
  const unsigned char second = byte(1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second >= 0xa0;
  const bool too_large = first == 0xf4 && second >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

char32_t utf8_code_point(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence.front());
  if (sequence.size() == 1) return first;
  char32_t code = first & (0x7fU >> sequence.size());
  for (const char next : sequence.substr(1)) code = (code << 6U) | (static_cast<unsigned char>(next) & 0x3fU);
  return code;
}

bool is_utf8(std::string_view text) {
  text.remove_prefix(ascii_length(text));
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string to_utf8(std::string_view text) {
  std::string well_formed;
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_length(text);
    if (length == 0) {
      well_formed += "\xef\xbf\xbd";
      text.remove_prefix(1);
    } else {
      well_formed += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return well_formed;
}

}  // namespace cadre::base
