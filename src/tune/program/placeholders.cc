#include "tune/program/placeholders.h"

#include <algorithm>

#include "base/json.h"
#include "cadre/error.h"

namespace cadre::tune {
namespace {

bool may_be_in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-./:").find(c) != std::string_view::npos;
}

// Returns the length of the name that the text begins with, if a closing brace follows it; otherwise 0.
std::size_t name_before_brace(std::string_view text) {
  const auto end = std::ranges::find_if_not(text, may_be_in_name);
  return end != text.end() && *end == '}' ? static_cast<std::size_t>(end - text.begin()) : 0;
}

// Calls literal(text) and placeholder(name) for the parts of a text.
void for_each_part(std::string_view text, const auto& literal, const auto& placeholder) {
  while (!text.empty()) {
    const std::size_t brace = text.find('{');
    literal(text.substr(0, brace));
    if (brace == text.npos) return;
    text.remove_prefix(brace);
    const bool is_doubled = text.starts_with("{{");
    const std::size_t length = name_before_brace(text.substr(is_doubled ? 2 : 1));
    if (is_doubled && length > 0 && text.substr(length + 2).starts_with("}}")) {
      literal(text.substr(1, length + 2));
      text.remove_prefix(length + 4);
    } else if (!is_doubled && length > 0) {
      placeholder(std::string(text.substr(1, length)));
      text.remove_prefix(length + 2);
    } else {
      literal(text.substr(0, 1));
      text.remove_prefix(1);
    }
  }
}

}  // namespace

std::vector<std::string> placeholders_in(std::string_view text) {
  std::vector<std::string> names;
  for_each_part(text, [](std::string_view) {}, [&](std::string name) { names.push_back(std::move(name)); });
  return names;
}

std::string fill_placeholders(std::string_view text, const std::function<std::string(const std::string&)>& value_of) {
  std::string filled;
  for_each_part(
      text, [&](std::string_view part) { filled += part; }, [&](const std::string& name) { filled += value_of(name); });
  return filled;
}

std::string argument_text(const Value& value) {
  if (value.is_null()) throw InvalidArgument("null cannot be an argument: have the program read CADRE_CONFIG_FILE");
  if (!value.is_string()) return to_json(value);
  const auto text = value.get<std::string>();
  if (text.find('\0') != text.npos)
    throw InvalidArgument("text with a zero byte cannot be an argument: have the program read CADRE_CONFIG_FILE");
  return text;
}

}  // namespace cadre::tune
