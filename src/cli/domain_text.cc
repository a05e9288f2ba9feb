#include "cli/domain_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>

#include "base/json.h"
#include "cadre/error.h"

namespace cadre::cli {
namespace {

struct Function {
  std::size_t arguments;
  std::function<tune::SpaceEntry(const List&)> make;
};

double real(const Value& value) { return value.get<double>(); }
std::int64_t integer(const Value& value) { return value.get<std::int64_t>(); }

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> all{
      {"uniform", {2, [](const List& a) { return tune::uniform(real(a[0]), real(a[1])); }}},
      {"quniform", {3, [](const List& a) { return tune::quniform(real(a[0]), real(a[1]), real(a[2])); }}},
      {"loguniform", {2, [](const List& a) { return tune::loguniform(real(a[0]), real(a[1])); }}},
      {"qloguniform", {3, [](const List& a) { return tune::qloguniform(real(a[0]), real(a[1]), real(a[2])); }}},
      {"randn", {2, [](const List& a) { return tune::randn(real(a[0]), real(a[1])); }}},
      {"qrandn", {3, [](const List& a) { return tune::qrandn(real(a[0]), real(a[1]), real(a[2])); }}},
      {"randint", {2, [](const List& a) { return tune::randint(integer(a[0]), integer(a[1])); }}},
      {"qrandint", {3, [](const List& a) { return tune::qrandint(integer(a[0]), integer(a[1]), integer(a[2])); }}},
      {"lograndint", {2, [](const List& a) { return tune::lograndint(integer(a[0]), integer(a[1])); }}},
      {"qlograndint",
       {3, [](const List& a) { return tune::qlograndint(integer(a[0]), integer(a[1]), integer(a[2])); }}},
      {"choice", {1, [](const List& a) { return tune::choice(a[0].items()); }}},
      {"grid_search", {1, [](const List& a) { return tune::grid_search(a[0].items()); }}},
      {"ordinal", {1, [](const List& a) { return tune::ordinal(a[0].items()); }}}};
  return all;
}

std::string names() {
  std::string text;
  for (const auto& [name, function] : functions()) text += (text.empty() ? "" : ", ") + name;
  return text;
}

bool is_identifier(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

Value parse(const std::string& json, const std::string& what) {
  try {
    return base::parse_json(json, what);
  } catch (const StorageError& error) {
    throw InvalidArgument(error.what());
  }
}

}  // namespace

tune::SpaceEntry parse_entry(const std::string& key, const std::string& text, const ParseArguments& parse_arguments) {
  const std::size_t open = text.find('(');
  const std::string name = text.substr(0, open);
  if (open == text.npos || text.back() != ')' || !is_identifier(name)) return text;
  const auto function = functions().find(name);
  if (function == functions().end())
    throw InvalidArgument(
        fmt::format("\"{}\": there is no domain {}; there are: {}. A constant of this text is "
                    "choice([...]) with one option",
                    key, name, names()));
  const List values = parse_arguments(text.substr(open + 1, text.size() - open - 2));
  if (values.size() != function->second.arguments)
    throw InvalidArgument(fmt::format("\"{}\": {} takes {}", key, function->first,
                                      function->second.arguments == 1
                                          ? fmt::format("one list: {}([\"a\", \"b\"])", function->first)
                                          : fmt::format("{} arguments", function->second.arguments)));
  try {
    return function->second.make(values);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument("\"" + key + "\": " + error.what());
  }
}

std::pair<std::string, tune::SpaceEntry> parse_parameter(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos || equals == 0)
    throw InvalidArgument("\"" + text + "\" is no parameter: write name=uniform(0, 1), or name=10");
  const std::string key = text.substr(0, equals);
  const std::string entry = text.substr(equals + 1);
  const std::size_t open = entry.find('(');
  if (open == entry.npos || entry.back() != ')' || !is_identifier(entry.substr(0, open)))
    return {key, tune::SpaceEntry(parse(entry, "the constant of \"" + key + "\""))};
  return {key, parse_entry(key, entry, [&key](const std::string& arguments) {
            return parse("[" + arguments + "]", "the arguments of \"" + key + "\"").items();
          })};
}

}  // namespace cadre::cli
