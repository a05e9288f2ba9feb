// Names that people give and files that carry them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cadre::base {

// Why `name` cannot be the name of a file in a directory ("it is empty", "it contains a '/'", …); empty when it can. At
// most 255 bytes, no control characters, not "." or "..", no leading '-' or '.'.
std::string fault_of_file_name(std::string_view name);

// `text` with every byte outside [A-Za-z0-9_.,=@+-] replaced by '_', cut to `maximum` bytes.
std::string safe_file_name(std::string_view text, std::size_t maximum);

}  // namespace cadre::base
