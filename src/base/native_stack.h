// Removes the stack that libtorch's errors carry behind their message.
#pragma once

#include <string>
#include <string_view>

namespace cadre::base {

// `text` without the C++ stacks that c10::Error::what() adds: from a line "Exception raised from <function> at <file>
// (most recent call first):" through its frames, and the empty lines around them. Other text stays as it is.
std::string without_native_stacks(std::string_view text);

}  // namespace cadre::base
