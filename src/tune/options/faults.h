// What is wrong with what somebody asks for, all of it in one message.
#pragma once

#include <algorithm>
#include <string>

#include "base/display_text.h"
#include "base/registry.h"
#include "cadre/error.h"

namespace cadre::tune {

// Collects faults, each with the path of the option.
class Faults {
 public:
  // Names come from anywhere: what a terminal would act on is spelled out.
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

// Adds what is wrong with the name of a function that is to be among the program's, `maker` makes such a name.
template <class T>
void check_registered(const base::Registry<T>& functions, const std::string& name, const std::string& maker,
                      const std::string& option, Faults& faults) {
  faults.unless(functions.find(name) != nullptr, option,
                "this program has no function \"" + name + "\"; make it with tune::" + maker + "<f>()");
  const auto& twice = functions.duplicates();
  faults.unless(std::ranges::find(twice, name) == twice.end(), option,
                "two functions of this program are called \"" + name + "\"");
}

}  // namespace cadre::tune
