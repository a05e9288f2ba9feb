#include "base/native_stack.h"

#include <algorithm>
#include <cctype>

namespace cadre::base {
namespace {

std::string_view without_indent(std::string_view line) {
  return line.substr(std::min(line.find_first_not_of(" \t\r"), line.size()));
}

bool begins_stack(std::string_view line) {
  return line.starts_with("Exception raised from ") && line.find(" (most recent call first)") != line.npos;
}

// Returns true for a frame, such as "frame #3: f() + 0x1f (0x7f... in libc10.so)" or "#3 f() from file.cpp:12", and for
// the empty lines and the title around frames.
bool is_of_stack(std::string_view line) {
  const auto is_numbered = [](std::string_view rest) {
    return rest.starts_with('#') && rest.size() > 1 && std::isdigit(static_cast<unsigned char>(rest[1])) != 0;
  };
  return line.empty() || line == "C++ CapturedTraceback:" || is_numbered(line) ||
         (line.starts_with("frame ") && is_numbered(line.substr(6)));
}

}  // namespace

std::string without_native_stacks(std::string_view text) {
  std::string left;
  bool in_stack = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    text.remove_prefix(line.size());
    const std::string_view content = without_indent(line.substr(0, line.find('\n')));
    in_stack = begins_stack(content) || (in_stack && is_of_stack(content));
    if (!in_stack) left += line;
    if (in_stack && text.empty() && left.ends_with('\n')) left.pop_back();
  }
  return left;
}

}  // namespace cadre::base
