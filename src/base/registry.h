// Objects by name, registered while the program is loaded.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cadre::base {

template <class T>
class Registry {
 public:
  // Adds an item. A second item with the same name is not added; its name is recorded in duplicates().
  void add(std::string_view name, T item) {
    if (items_.emplace(name, std::move(item)).second) return;
    if (std::ranges::find(duplicates_, name) == duplicates_.end()) duplicates_.emplace_back(name);
  }

  // Returns nullptr if there is no such item.
  const T* find(std::string_view name) const {
    const auto found = items_.find(name);
    return found == items_.end() ? nullptr : &found->second;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, item] : items_) names.push_back(name);
    return names;
  }
  const std::vector<std::string>& duplicates() const { return duplicates_; }  // names that were added more than once

 private:
  std::map<std::string, T, std::less<>> items_;
  std::vector<std::string> duplicates_;
};

}  // namespace cadre::base
