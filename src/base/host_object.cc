#include "base/host_object.h"

#include <algorithm>
#include <utility>

namespace cadre::base {
namespace {

bool has_host_objects(const Value& value) {
  if (value.is_list()) return std::ranges::any_of(value.items(), has_host_objects);
  if (!value.is_dict()) return false;
  return text_of_host_object(value) != nullptr ||
         std::ranges::any_of(value.dict(), [](const auto& entry) { return has_host_objects(entry.second); });
}

}  // namespace

const Value* text_of_host_object(const Value& value) {
  if (!value.is_dict() || value.dict().empty() || !value.dict().front().first.starts_with('$')) return nullptr;
  const std::size_t entries = find_entry(value.dict(), "value") != nullptr ? 3 : 2;
  return value.dict().size() == entries ? find_entry(value.dict(), "repr") : nullptr;
}

Value without_host_objects(const Value& value) {
  if (!has_host_objects(value)) return value;
  if (value.is_list()) {
    List items;
    for (const Value& item : value.items()) items.push_back(without_host_objects(item));
    return items;
  }
  if (const Value* const text = text_of_host_object(value)) {
    const Value* const plain = find_entry(value.dict(), "value");
    return plain != nullptr ? without_host_objects(*plain) : *text;
  }
  Dict entries;
  for (const auto& [key, entry] : value.dict()) entries.emplace_back(key, without_host_objects(entry));
  return entries;
}

}  // namespace cadre::base
