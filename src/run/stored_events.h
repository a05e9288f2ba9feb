// Parts of events as the store's rows have them, which experiments and training runs share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cadre/error.h"
#include "cadre/value.h"
#include "engine/engine.h"
#include "run/checkpoint_registry.h"

namespace cadre::run {

// Enumerations have names in the store.
template <class Enum, std::size_t size>
const char* name_of(Enum value, const std::pair<Enum, const char*> (&names)[size]) {
  return std::ranges::find(names, value, &std::pair<Enum, const char*>::first)->second;
}

template <class Enum, std::size_t size>
Enum value_of(const std::string& name, const std::pair<Enum, const char*> (&names)[size], const std::string& source) {
  for (const auto& [value, known] : names) {
    if (name == known) return value;
  }
  throw StorageError(source + " has the unknown word \"" + name + "\": the store is damaged or of a newer Cadre");
}

Dict to_dict(const engine::Exit& exit);
engine::Exit to_exit(const Config& data, const std::string& source);

// Feeds rows of a store to what made them. Its state is looked up by numbers that rows name; rows that somebody has
// changed name others. Throws StorageError then.
template <class Act>
decltype(auto) replaying(const std::string& source, const Act& act) {
  try {
    return act();
  } catch (const std::logic_error& error) {
    throw StorageError(source + " names what was not there (" + error.what() + "): it was changed by another program");
  }
}

List to_list(const std::vector<CheckpointId>& ids);
std::vector<CheckpointId> to_ids(const List& list);

}  // namespace cadre::run
