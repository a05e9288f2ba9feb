// Definitions of Record's members, for files that instantiate it: Config and Metrics in value.cc, dataset rows in
// src/data.
#pragma once

#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>
#include <utility>

#include "cadre/value.h"

namespace cadre {

namespace detail {

// Returns the value at a key or at a path through nested dictionaries; nullptr if there is none.
const Value* find_path(const Dict& entries, std::string_view path);
bool keys_are_unique(const Dict& entries);
Dict to_dict(std::initializer_list<DictEntry> entries);

}  // namespace detail

template <class Tag>
Record<Tag>::Record(std::initializer_list<DictEntry> entries) : Record(detail::to_dict(entries)) {}

template <class Tag>
Record<Tag>::Record(Dict entries) : Record(Value(std::move(entries))) {}

template <class Tag>
Record<Tag>::Record(const Value& value) {
  if (detail::keys_are_unique(value.dict())) {
    entries_ = value.shared_dict();
  } else {
    for (const auto& [key, entry] : value.dict()) set(key, entry);
  }
}

template <class Tag>
const Dict& Record<Tag>::no_entries() {
  static const Dict none;
  return none;
}

template <class Tag>
const Value* Record<Tag>::find(std::string_view key) const {
  return detail::find_path(dict(), key);
}

template <class Tag>
std::optional<double> Record<Tag>::number(std::string_view key) const {
  const Value* value = find(key);
  return value != nullptr && value->is_number() ? std::optional(value->template get<double>()) : std::nullopt;
}

template <class Tag>
const Value& Record<Tag>::at(std::string_view key) const {
  if (const Value* value = find(key)) return *value;
  std::string keys;
  for (const auto& entry : dict()) keys += (keys.empty() ? "" : ", ") + entry.first;
  throw NotFound("there is no key \"" + std::string(key) + "\"; the keys are: " + (keys.empty() ? "none" : keys));
}

template <class Tag>
void Record<Tag>::set(std::string_view key, Value value) {
  Dict& entries = own_entries();
  for (auto& entry : entries) {
    if (entry.first == key) {
      entry.second = std::move(value);
      return;
    }
  }
  entries.emplace_back(std::string(key), std::move(value));
}

template <class Tag>
bool Record<Tag>::erase(std::string_view key) {
  return std::erase_if(own_entries(), [&](const auto& entry) { return entry.first == key; }) != 0;
}

// Returns the entries for writing, copied first if they are shared.
template <class Tag>
Dict& Record<Tag>::own_entries() {
  if (entries_.use_count() != 1) entries_ = std::make_shared<Dict>(dict());
  std::atomic_thread_fence(std::memory_order_acquire);  // after the reads of former co-owners
  return const_cast<Dict&>(*entries_);                  // every shared Dict was made without const
}

}  // namespace cadre
