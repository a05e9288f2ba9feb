// Conversion of parts of events to and from the store's rows, shared by experiments and training runs.
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

// Convert between enumerators and their names in the store. value_of() throws StorageError for an unknown name.
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

// Calls `act`, which feeds rows of a store to the core. The core looks up its state by the numbers in the rows; rows
// that another program has changed may have numbers that do not exist. Throws StorageError then.
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
