// Text for people, outside of what is drawn on a terminal: to the program's host, if that prints itself, else to
// standard output and standard error.
#pragma once

#include <string_view>

namespace cadre::view {

// Returns true if the host prints what is written here, so that nothing can be drawn on a terminal.
bool host_prints();
// Returns true if the host shows how fit() goes on, so that the console need not.
bool host_shows_progress();

// Writes whole lines, at once. Gives up on an error, because nothing depends on the output.
void print(std::string_view lines);
void print_error(std::string_view lines);

}  // namespace cadre::view
