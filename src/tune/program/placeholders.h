// Placeholders in the texts of a Program: "{lr}".
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cadre/value.h"

namespace cadre::tune {

// Returns the names of a text's placeholders, in order, each as often as it occurs.
std::vector<std::string> placeholders_in(std::string_view text);

// Returns the text with each placeholder replaced by what `value_of` returns for its name, and "{{lr}}" by "{lr}".
std::string fill_placeholders(std::string_view text, const std::function<std::string(const std::string&)>& value_of);

// Returns a value as the text of an argument. Throws InvalidArgument for one that no argument can carry: null, and text
// with a zero byte.
std::string argument_text(const Value& value);

}  // namespace cadre::tune
