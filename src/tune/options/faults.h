// What is wrong with what somebody asks for, all of it in one message.
#pragma once

#include <string>

#include "cadre/error.h"
#include "tune/console/display_text.h"

namespace cadre::tune {

// Collects faults, each with the path of the option.
class Faults {
 public:
  // Names come from anywhere: what a terminal would act on is spelled out.
  void add(const std::string& option, const std::string& what) {
    text_ += "\n  " + console::printable(option + ": " + what, console::Encoding::utf8);
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

}  // namespace cadre::tune
