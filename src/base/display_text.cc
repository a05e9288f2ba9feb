#include "base/display_text.h"

#include <fmt/format.h>
#include <locale.h>
#include <wchar.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace cadre::base {
namespace {

// Makes the C library use UTF-8 in this thread, whatever locale the program has set, until destroyed. Does nothing for
// ASCII, so programs whose names and messages are ASCII do not load the locale.
class Utf8Locale {
 public:
  explicit Utf8Locale(std::string_view text) : before_(is_ascii(text) ? locale_t{} : ::uselocale(locale())) {}
  ~Utf8Locale() {
    if (before_ != locale_t{}) ::uselocale(before_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  static bool is_ascii(std::string_view text) {
    return std::ranges::all_of(text, [](unsigned char byte) { return byte < 0x80; });
  }
  static locale_t locale() {
    static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);  // never freed
    return utf8;  // null if missing: the program's locale stays and may not decode non-ASCII text
  }
  locale_t before_;
};

struct Character {
  std::string_view bytes;
  wchar_t code = 0;
  int columns = -1;  // -1: invalid or not printable
};

// Returns the first character of a non-empty text.
Character first_of(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text.front());
  if (byte < 0x80) return {text.substr(0, 1), static_cast<wchar_t>(byte), byte < 0x20 || byte == 0x7f ? -1 : 1};
  std::mbstate_t state{};
  wchar_t code = 0;
  const std::size_t length = ::mbrtowc(&code, text.data(), text.size(), &state);
  if (length == 0 || length > text.size()) return {text.substr(0, 1), static_cast<wchar_t>(byte), -1};
  return {text.substr(0, length), code, ::wcwidth(code)};
}

// Returns true for a character without a glyph that joins, hides, tags or reorders its neighbours.
bool is_formatting(wchar_t code) {
  constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 12> ranges = {{{0xad, 0xad},
                                                                               {0x34f, 0x34f},
                                                                               {0x61c, 0x61c},
                                                                               {0x180b, 0x180f},
                                                                               {0x200b, 0x200f},
                                                                               {0x2028, 0x202e},
                                                                               {0x2060, 0x206f},
                                                                               {0xfe00, 0xfe0f},
                                                                               {0xfeff, 0xfeff},
                                                                               {0xfff0, 0xfffb},
                                                                               {0xe0000, 0xe0fff},
                                                                               {0x1f3fb, 0x1f3ff}}};
  const auto value = static_cast<std::uint32_t>(code);
  return std::ranges::any_of(ranges, [&](const auto& range) { return value >= range.first && value <= range.second; });
}

std::string escaped(const Character& character) {
  if (character.code == '\n') return "\\n";
  if (character.code == '\t') return "\\t";
  const auto code = static_cast<std::uint32_t>(character.code);
  return character.bytes.size() == 1 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{{{:x}}}", code);
}

std::string_view ellipsis(Encoding encoding) { return encoding == Encoding::utf8 ? "…" : "..."; }

std::size_t ellipsis_columns(Encoding encoding) { return encoding == Encoding::utf8 ? 1 : 3; }

}  // namespace

Encoding encoding_of_environment() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    std::string name = value;
    std::ranges::transform(name, name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
    return name.find("utf-8") != std::string::npos || name.find("utf8") != std::string::npos ? Encoding::utf8
                                                                                             : Encoding::ascii;
  }
  return Encoding::ascii;
}

std::string printable(std::string_view text, Encoding encoding) {
  const Utf8Locale utf8(text);
  std::string shown;
  while (!text.empty()) {
    const Character character = first_of(text);
    text.remove_prefix(character.bytes.size());
    const bool combines_with_nothing = character.columns == 0 && shown.empty();
    if (character.columns < 0 || combines_with_nothing || is_formatting(character.code)) {
      shown += escaped(character);
    } else if (encoding == Encoding::ascii && character.bytes.size() > 1) {
      shown += '?';
    } else {
      shown += character.bytes;
    }
  }
  return shown;
}

std::string printable_lines(std::string_view text, Encoding encoding) {
  std::string lines;
  for (;;) {
    const std::size_t end = text.find('\n');
    lines += printable(text.substr(0, end), encoding);
    if (end == std::string_view::npos) return lines;
    lines += '\n';
    text.remove_prefix(end + 1);
  }
}

std::size_t display_width(std::string_view text) {
  const Utf8Locale utf8(text);
  std::size_t width = 0;
  while (!text.empty()) {
    const Character character = first_of(text);
    text.remove_prefix(character.bytes.size());
    width += static_cast<std::size_t>(std::max(character.columns, 0));
  }
  return width;
}

std::string first_columns(std::string_view text, std::size_t columns, Encoding encoding) {
  if (display_width(text) <= columns) return std::string(text);
  const std::size_t mark = ellipsis_columns(encoding);
  if (columns < mark) return std::string(columns, '.');
  const Utf8Locale utf8(text);
  std::size_t length = 0;
  for (std::size_t width = 0;;) {
    const Character character = first_of(text.substr(length));
    width += static_cast<std::size_t>(std::max(character.columns, 0));
    if (width > columns - mark) break;
    length += character.bytes.size();
  }
  return std::string(text.substr(0, length)).append(ellipsis(encoding));
}

std::string last_columns(std::string_view text, std::size_t columns, Encoding encoding) {
  std::size_t width = display_width(text);
  if (width <= columns) return std::string(text);
  const std::size_t mark = ellipsis_columns(encoding);
  if (columns < mark) return std::string(columns, '.');
  const Utf8Locale utf8(text);
  while (!text.empty()) {
    const Character character = first_of(text);
    if (width <= columns - mark && character.columns != 0) break;  // an accent is removed with its character
    width -= static_cast<std::size_t>(std::max(character.columns, 0));
    text.remove_prefix(character.bytes.size());
  }
  return std::string(ellipsis(encoding)).append(text);
}

}  // namespace cadre::base
