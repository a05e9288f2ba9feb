// Names given by users, and file names made from them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cadre::base {

// Returns why `name` cannot be a file name ("it is empty", "it contains a '/'", …); empty if it can. Allowed are at
// most 255 bytes, no control characters, and no leading '-' or '.'.
std::string fault_of_file_name(std::string_view name);

// Returns `text` with every byte outside [A-Za-z0-9_.,=@+-] replaced by '_', cut to `maximum` bytes.
std::string safe_file_name(std::string_view text, std::size_t maximum);

}  // namespace cadre::base
