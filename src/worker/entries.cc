#include "worker/entries.h"

#include <utility>

#include "base/registry.h"

namespace cadre::worker {
namespace {

// Inside a function, because it is used while objects of other files are initialised.
base::Registry<Entry>& entries() {
  static base::Registry<Entry> instance;
  return instance;
}

}  // namespace

bool register_entry(std::string_view name, Entry entry) {
  entries().add(name, std::move(entry));
  return true;
}

const Entry* find_entry(std::string_view name) { return entries().find(name); }

std::vector<std::string> entry_names() { return entries().names(); }

std::vector<std::string> duplicate_entry_names() { return entries().duplicates(); }

}  // namespace cadre::worker
