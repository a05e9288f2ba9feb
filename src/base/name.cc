#include "base/name.h"

namespace cadre::base {

std::string fault_of_file_name(std::string_view name) {
  constexpr std::size_t longest = 255;
  if (name.empty()) return "it is empty";
  if (name.size() > longest) return "it is longer than 255 bytes";
  if (name.front() == '.' || name.front() == '-') return std::string("it begins with '") + name.front() + "'";
  for (const char c : name) {
    if (c == '/') return "it contains a '/'";
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return "it contains a control character";
  }
  return {};
}

std::string safe_file_name(std::string_view text, std::size_t maximum) {
  std::string name(text.substr(0, maximum));
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.,=@+-";
  for (char& c : name) {
    if (allowed.find(c) == allowed.npos) c = '_';
  }
  return name;
}

}  // namespace cadre::base
