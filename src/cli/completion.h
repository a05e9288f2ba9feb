// Completion of the command line in shells. Pure: the description of a program in, a script out.
#pragma once

#include <string>

#include "cli/command_line.h"

namespace cadre::cli {

// Return a script that completes commands, options, values of which there are a few, and paths where they are expected.
// bash sources it; it needs no other package. zsh has it as a function of its name, or sources it. fish has it in a
// folder of completions.
std::string bash_completion(const CommandText& program);
std::string zsh_completion(const CommandText& program);
std::string fish_completion(const CommandText& program);

}  // namespace cadre::cli
