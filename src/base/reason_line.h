// Finds the line of an error that says what happened.
#pragma once

#include <string>
#include <string_view>

namespace cadre::base {

// Returns the first line of `error`. If that introduces a traceback of Python's, returns what stands before the
// traceback, and the line that names the exception which was raised last.
std::string reason_line(std::string_view error);

}  // namespace cadre::base
