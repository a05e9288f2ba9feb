#include "base/percent_encoding.h"

#include <charconv>

namespace cadre::base {
namespace {

constexpr std::string_view kHexadecimal = "0123456789ABCDEF";

bool is_plain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("-._~").find(c) != std::string_view::npos;
}

}  // namespace

std::string percent_encoded(std::string_view text, std::string_view as_they_are) {
  std::string encoded;
  for (const char c : text) {
    if (is_plain(c) || as_they_are.find(c) != as_they_are.npos) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kHexadecimal[byte >> 4], kHexadecimal[byte & 15]};
    }
  }
  return encoded;
}

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned byte = 0;
    const char* digits = text.data() + at + 1;
    const bool is_code =
        text[at] == '%' && at + 2 < text.size() && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
    decoded += is_code ? static_cast<char>(byte) : text[at];
    if (is_code) at += 2;
  }
  return decoded;
}

}  // namespace cadre::base
