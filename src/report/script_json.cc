#include "report/script_json.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <variant>

#include "base/overload.h"
#include "base/utf8.h"

namespace cadre::report {
namespace {

void append_unit(std::string& out, std::uint32_t unit) { fmt::format_to(std::back_inserter(out), "\\u{:04x}", unit); }

// Appends a character that is no plain ASCII, as one or two UTF-16 code units.
void append_wide(std::string& out, std::string_view sequence) {
  const std::uint32_t code = base::utf8_code_point(sequence);
  if (code < 0x10000) return append_unit(out, code);
  append_unit(out, 0xd800 + ((code - 0x10000) >> 10U));
  append_unit(out, 0xdc00 + ((code - 0x10000) & 0x3ffU));
}

void append_text(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const char c = text[0];
    const std::size_t length = base::utf8_sequence_length(text);
    if (length == 0) {
      out += "\\ufffd";
    } else if (length > 1) {
      append_wide(out, text.substr(0, length));
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c < ' ' || c == '<' || c == '>' || c == '&' || c == '\x7f') {
      append_unit(out, static_cast<unsigned char>(c));
    } else {
      out += c;
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  out += '"';
}

template <class Number>
void append_number(std::string& out, Number number) {
  std::array<char, 32> digits{};
  out.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
}

void append(std::string& out, const Value& value);

void append_list(std::string& out, const List& items) {
  out += '[';
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ',';
    append(out, items[i]);
  }
  out += ']';
}

void append_dict(std::string& out, const Dict& entries) {
  out += '{';
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) out += ',';
    append_text(out, entries[i].first);
    out += ':';
    append(out, entries[i].second);
  }
  out += '}';
}

void append(std::string& out, const Value& value) {
  std::visit(
      base::Overload{[&](std::monostate) { out += "null"; }, [&](bool truth) { out += truth ? "true" : "false"; },
                     [&](std::int64_t number) { append_number(out, number); },
                     [&](double number) {
                       if (!std::isfinite(number)) {
                         out += "null";
                       } else {
                         append_number(out, number);
                       }
                     },
                     [&](const std::string& text) { append_text(out, text); },
                     [&](const std::shared_ptr<const List>& items) { append_list(out, *items); },
                     [&](const std::shared_ptr<const Dict>& entries) { append_dict(out, *entries); },
                     [&](const Reference&) { out += "null"; }},
      value.data());
}

}  // namespace

std::string to_script_json(const Value& value) {
  std::string out;
  append(out, value);
  return out;
}

}  // namespace cadre::report
