#include "run/entries.h"

#include <algorithm>
#include <map>
#include <utility>

namespace cadre::run {
namespace {

struct Entries {
  std::map<std::string, Entry, std::less<>> by_name;
  std::vector<std::string> duplicates;
};

// Inside a function: it is used while other files' objects are initialised.
Entries& entries() {
  static Entries instance;
  return instance;
}

}  // namespace

void register_entry(std::string_view name, Entry entry) {
  if (entries().by_name.emplace(name, std::move(entry)).second) return;
  auto& duplicates = entries().duplicates;
  if (std::ranges::find(duplicates, name) == duplicates.end()) duplicates.emplace_back(name);
}

const Entry* find_entry(std::string_view name) {
  const auto found = entries().by_name.find(name);
  return found == entries().by_name.end() ? nullptr : &found->second;
}

std::vector<std::string> entry_names() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries().by_name) names.push_back(name);
  return names;
}

std::vector<std::string> duplicate_entry_names() { return entries().duplicates; }

}  // namespace cadre::run
