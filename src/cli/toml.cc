#include "cli/toml.h"

#define TOML_ENABLE_FORMATTERS 0
#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include "cadre/error.h"

namespace cadre::cli {
namespace {

using Places = std::map<std::string, std::string>;

std::string path_below(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}/{}", path, key);
}

Value to_value(const toml::node& node, const std::string& path, const std::string& name, Places& places);

// Returns the entries in the order of the text, which the table does not keep.
Dict to_dict(const toml::table& table, const std::string& path, const std::string& name, Places& places) {
  std::vector<std::pair<const toml::key*, const toml::node*>> sorted;
  for (const auto& [key, node] : table) sorted.emplace_back(&key, &node);
  std::ranges::stable_sort(
      sorted, [](const auto& a, const auto& b) { return a.first->source().begin < b.first->source().begin; });
  Dict dict;
  for (const auto& [key, node] : sorted) {
    const std::string entry = path_below(path, key->str());
    places.insert_or_assign(entry, fmt::format("{}, line {}", name, key->source().begin.line));
    dict.emplace_back(std::string(key->str()), to_value(*node, entry, name, places));
  }
  return dict;
}

Value to_value(const toml::node& node, const std::string& path, const std::string& name, Places& places) {
  if (const toml::table* table = node.as_table()) return to_dict(*table, path, name, places);
  if (const toml::array* array = node.as_array()) {
    List list;
    for (const toml::node& item : *array)
      list.push_back(to_value(item, path_below(path, std::to_string(list.size())), name, places));
    return list;
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return whole->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  std::ostringstream text;
  node.visit([&text](const auto& value) {
    if constexpr (requires { text << value.get(); }) text << value.get();
  });
  return text.str();
}

// Replaces or adds an entry of a dictionary.
Value& entry_of(Dict& dict, const std::string& key) {
  const auto found = std::ranges::find(dict, key, &Dict::value_type::first);
  if (found != dict.end()) return found->second;
  return dict.emplace_back(key, Value()).second;
}

void merge(Dict& into, const Dict& changes) {
  for (const auto& [key, change] : changes) {
    Value& entry = entry_of(into, key);
    if (!change.is_dict() || !entry.is_dict()) {
      entry = change;
      continue;
    }
    Dict merged = entry.dict();
    merge(merged, change.dict());
    entry = std::move(merged);
  }
}

// Returns the only entry of a document; a comment has none.
const toml::node* only_entry(const toml::table& table) { return table.size() == 1 ? &table.begin()->second : nullptr; }

}  // namespace

Value toml_value(const std::string& text) {
  try {
    const toml::table table = toml::parse("value = " + text);
    Places places;
    if (const toml::node* const value = only_entry(table)) return to_value(*value, "", "", places);
  } catch (const toml::parse_error&) {
  }
  return text;
}

TomlDocument::TomlDocument(const std::string& text, std::string name) : name_(std::move(name)) {
  try {
    entries_ = to_dict(toml::parse(text), "", name_, places_);
  } catch (const toml::parse_error& error) {
    throw InvalidArgument(fmt::format("{}, line {}: {}", name_, error.source().begin.line, error.description()));
  }
}

void TomlDocument::change(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos || equals == 0)
    throw InvalidArgument("--set " + text + ": write key=value, as in --set num_samples=10");
  const std::string key = text.substr(0, equals);
  const std::string value = text.substr(equals + 1);
  const std::string name = "--set " + text;
  toml::table table;
  try {
    table = toml::parse(key + " = ''");
  } catch (const toml::parse_error& error) {
    throw InvalidArgument(fmt::format("{}: {} is no key: {}", name, key, error.description()));
  }
  if (only_entry(table) == nullptr)  // "#" begins a comment
    throw InvalidArgument(fmt::format("{}: {} is no key: write key=value, as in --set num_samples=10", name, key));
  try {
    table = toml::parse(key + " = " + value);
  } catch (const toml::parse_error&) {
    toml::node* node = &table;
    while (toml::table* inner = node->as_table()) node = &inner->begin()->second;
    *node->as_string() = value;
  }
  Places places;
  merge(entries_, to_dict(table, "", name, places));
  for (const auto& [path, place] : places) places_.insert_or_assign(path, name);
}

std::string TomlDocument::place(std::string path) const {
  while (!path.empty()) {
    if (const auto place = places_.find(path); place != places_.end()) return place->second;
    const std::size_t slash = path.rfind('/');
    path.resize(slash == path.npos ? 0 : slash);
  }
  return name_;
}

}  // namespace cadre::cli
