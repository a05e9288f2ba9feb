// Removes the C++ stacks that libtorch appends to its error messages.
#pragma once

#include <string>
#include <string_view>

namespace cadre::base {

// Returns `text` without the C++ stacks added by c10::Error::what(): from a line "Exception raised from <function> at
// <file> (most recent call first):" through its frames, including the empty lines around them. Other text stays as it
// is.
std::string without_native_stacks(std::string_view text);

}  // namespace cadre::base
