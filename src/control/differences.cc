#include "control/differences.h"

#include <fmt/format.h>

#include "cadre/error.h"

namespace cadre::control {
namespace {

List keys_of(const Dict& entries) {
  List keys;
  for (const auto& [key, value] : entries) keys.emplace_back(key);
  return keys;
}

// Returns true if both are dictionaries of the same "type", so that their entries can be compared.
bool comparable(const Value& before, const Value& now) {
  if (!before.is_dict() || !now.is_dict()) return false;
  const Value* const old_type = find_entry(before.dict(), "type");
  const Value* const new_type = find_entry(now.dict(), "type");
  return old_type == nullptr || new_type == nullptr || *old_type == *new_type;
}

void compare(const Value& before, const Value& now, const std::string& path, std::vector<Difference>& found) {
  if (before == now || path == "run_config/verbose" || path == "run_config/log_to_driver") return;
  if (!comparable(before, now)) return found.push_back({path, to_json(before), to_json(now)});
  const auto at = [&](const std::string& key) { return path.empty() ? key : path + "/" + key; };
  const Dict& old_entries = before.dict();
  const Dict& new_entries = now.dict();
  if (keys_of(old_entries) == keys_of(new_entries)) {
    for (std::size_t i = 0; i < old_entries.size(); ++i)
      compare(old_entries[i].second, new_entries[i].second, at(old_entries[i].first), found);
    return;
  }
  const std::size_t found_before = found.size();
  for (const auto& [key, value] : old_entries) {
    if (find_entry(new_entries, key) == nullptr) found.push_back({at(key), to_json(value), ""});
  }
  for (const auto& [key, value] : new_entries) {
    const Value* const old_value = find_entry(old_entries, key);
    if (old_value == nullptr) found.push_back({at(key), "", to_json(value)});
    if (old_value != nullptr) compare(*old_value, value, at(key), found);
  }
  if (found.size() == found_before)
    found.push_back({path + ", its order", to_json(keys_of(old_entries)), to_json(keys_of(new_entries))});
}

}  // namespace

std::vector<Difference> differences(const Dict& before, const Dict& now) {
  std::vector<Difference> found;
  compare(before, now, "", found);
  return found;
}

void check_same(const Dict& before, const Dict& now, const std::string& subject) {
  std::string text;
  for (const auto& [path, was, is] : differences(before, now))
    text += fmt::format("\n  {}: it was {}, and now is {}", path, was.empty() ? "not there" : was,
                        is.empty() ? "not there" : is);
  if (!text.empty()) throw InvalidArgument(subject + " was begun with other options:" + text);
}

}  // namespace cadre::control
