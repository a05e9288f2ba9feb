// The manual page of a program with commands. Pure: its description in, a page in man(7)'s language out.
#pragma once

#include <string>
#include <string_view>

#include "cli/command_line.h"

namespace cadre::cli {

// Returns the page with all commands, from the same texts as --help. `version`: "cadre 0.1.0".
std::string man_page(const CommandText& program, std::string_view summary, std::string_view version);

}  // namespace cadre::cli
