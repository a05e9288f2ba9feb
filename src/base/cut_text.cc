#include "base/cut_text.h"

namespace cadre::base {
namespace {

constexpr std::size_t kMostFurtherBytes = 3;  // of a character, after its first one

bool is_further_byte(char c) { return (static_cast<unsigned char>(c) & 0xc0u) == 0x80u; }

}  // namespace

std::string_view first_bytes(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  for (std::size_t fewer = 0; fewer <= kMostFurtherBytes && fewer <= most; ++fewer) {
    if (!is_further_byte(text[most - fewer])) return text.substr(0, most - fewer);
  }
  return text.substr(0, most);
}

std::string_view last_bytes(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  const std::string_view end = text.substr(text.size() - most);
  for (std::size_t fewer = 0; fewer <= kMostFurtherBytes && fewer <= most; ++fewer) {
    if (fewer == most || !is_further_byte(end[fewer])) return end.substr(fewer);
  }
  return end;
}

}  // namespace cadre::base
