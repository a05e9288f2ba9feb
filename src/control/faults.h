// All faults of a user's request, in one message.
#pragma once

#include <algorithm>
#include <string>

#include "base/display_text.h"
#include "base/registry.h"
#include "cadre/error.h"

namespace cadre::control {

// Collects faults, each with the path of its option.
class Faults {
 public:
  // Adds a fault. Escapes control characters, because names may come from anywhere.
  void add(const std::string& option, const std::string& what) {
    text_ += "\n  " + base::printable(option + ": " + what, base::Encoding::utf8);
  }
  void unless(bool good, const std::string& option, const std::string& what) {
    if (!good) add(option, what);
  }
  void throw_if_any(const std::string& subject) const {
    if (!text_.empty()) throw InvalidArgument(subject + " cannot be run:" + text_);
  }

 private:
  std::string text_;
};

// Adds faults of the name of a function that must be registered in this program; `maker` is the tune:: function that
// makes it.
template <class T>
void check_registered(const base::Registry<T>& functions, const std::string& name, const std::string& maker,
                      const std::string& option, Faults& faults) {
  faults.unless(functions.find(name) != nullptr, option,
                "this program has no function \"" + name + "\"; make it with tune::" + maker + "<f>()");
  const auto& twice = functions.duplicates();
  faults.unless(std::ranges::find(twice, name) == twice.end(), option,
                "two functions of this program are called \"" + name + "\"");
}

}  // namespace cadre::control
