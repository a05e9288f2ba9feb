#include "dashboard/change.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>

#include "cadre/error.h"

namespace cadre::dashboard {
namespace {

// Keys of a change.
constexpr char kWhole[] = "=";      // the new value
constexpr char kEntries[] = "set";  // of a dictionary: a change for each key
constexpr char kRemoved[] = "cut";  // of a dictionary: keys; of a list: the length to which it is cut
constexpr char kItems[] = "at";     // of a list: an index and a change for each, one after the other
constexpr char kAdded[] = "add";    // of a list: items at its end

const List& list_of(const Value& value) {
  const auto* list = std::get_if<std::shared_ptr<const List>>(&value.data());
  if (list == nullptr) throw InvalidArgument("the change is not one of this document");
  return **list;
}

Value whole(const Value& after) { return Dict{{kWhole, after}}; }

bool is_same_object(const Value& a, const Value& b) {
  if (a.is_list() && b.is_list()) return &list_of(a) == &list_of(b);
  return a.is_dict() && b.is_dict() && &a.dict() == &b.dict();
}

const Value* entry(const Dict& dict, std::string_view key) {
  const auto found = std::ranges::find(dict, key, &Dict::value_type::first);
  return found == dict.end() ? nullptr : &found->second;
}

std::optional<Value> change_of_lists(const List& before, const List& after) {
  const std::size_t common = std::min(before.size(), after.size());
  List items;
  std::size_t replaced = 0;
  for (std::size_t i = 0; i < common; ++i) {
    std::optional<Value> change = change_between(before[i], after[i]);
    if (!change) continue;
    if (entry(change->dict(), kWhole) != nullptr && ++replaced > common / 2) return whole(after);
    items.emplace_back(i);
    items.push_back(*std::move(change));
  }
  if (items.empty() && before.size() == after.size()) return std::nullopt;
  Dict change;
  if (before.size() > common) change.emplace_back(kRemoved, common);
  if (!items.empty()) change.emplace_back(kItems, std::move(items));
  if (after.size() > common)
    change.emplace_back(kAdded, List(after.begin() + static_cast<std::ptrdiff_t>(common), after.end()));
  return change;
}

std::optional<Value> change_of_dicts(const Dict& before, const Dict& after) {
  std::unordered_map<std::string_view, const Value*> known;
  for (const auto& [key, value] : before) known.emplace(key, &value);
  Dict entries;
  for (const auto& [key, value] : after) {
    const auto found = known.find(key);
    if (found == known.end()) {
      entries.emplace_back(key, whole(value));
      continue;
    }
    if (std::optional<Value> change = change_between(*found->second, value))
      entries.emplace_back(key, *std::move(change));
    known.erase(found);
  }
  List removed;
  for (const auto& [key, value] : before) {
    if (known.contains(key)) removed.emplace_back(key);
  }
  if (entries.empty() && removed.empty()) return std::nullopt;
  Dict change;
  if (!removed.empty()) change.emplace_back(kRemoved, std::move(removed));
  if (!entries.empty()) change.emplace_back(kEntries, std::move(entries));
  return change;
}

bool are_equal_scalars(const Value& a, const Value& b) {
  if (a.is_double() && b.is_double()) {
    const auto x = a.get<double>();
    const auto y = b.get<double>();
    return x == y || (std::isnan(x) && std::isnan(y));
  }
  return a == b;
}

[[noreturn]] void throw_no_fit() { throw InvalidArgument("the change is not one of this document"); }

Value changed_list(List items, const Dict& change) {
  if (const Value* length = entry(change, kRemoved)) items.resize(std::min(items.size(), length->get<std::size_t>()));
  if (const Value* at = entry(change, kItems)) {
    for (std::size_t i = 0; i + 1 < list_of(*at).size(); i += 2) {
      const auto index = list_of(*at)[i].get<std::size_t>();
      if (index >= items.size()) throw_no_fit();
      items[index] = changed(items[index], list_of(*at)[i + 1]);
    }
  }
  if (const Value* added = entry(change, kAdded))
    items.insert(items.end(), list_of(*added).begin(), list_of(*added).end());
  return items;
}

Value changed_dict(Dict entries, const Dict& change) {
  if (const Value* removed = entry(change, kRemoved))
    std::erase_if(entries, [&](const auto& one) {
      return std::ranges::find(list_of(*removed), Value(one.first)) != list_of(*removed).end();
    });
  const Value* changes = entry(change, kEntries);
  if (changes == nullptr) return entries;
  for (const auto& [key, one] : changes->dict()) {
    const auto found = std::ranges::find(entries, key, &Dict::value_type::first);
    if (found == entries.end()) {
      entries.emplace_back(key, changed({}, one));
    } else {
      found->second = changed(found->second, one);
    }
  }
  return entries;
}

}  // namespace

std::optional<Value> change_between(const Value& before, const Value& after) {
  if (is_same_object(before, after)) return std::nullopt;
  if (before.is_list() && after.is_list()) return change_of_lists(list_of(before), list_of(after));
  if (before.is_dict() && after.is_dict()) return change_of_dicts(before.dict(), after.dict());
  if (are_equal_scalars(before, after)) return std::nullopt;
  return whole(after);
}

Value changed(const Value& before, const Value& change) {
  if (!change.is_dict()) throw_no_fit();
  const Dict& dict = change.dict();
  if (const Value* value = entry(dict, kWhole)) return *value;
  if (before.is_list()) return changed_list(list_of(before), dict);
  if (before.is_dict()) return changed_dict(before.dict(), dict);
  throw_no_fit();
}

}  // namespace cadre::dashboard
