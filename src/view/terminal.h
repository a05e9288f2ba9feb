// Access to the terminal at standard output: its abilities, its size, and writing to it.
#pragma once

#include <string_view>

#include "view/screen.h"

namespace cadre::view {

// Returns true if standard output is a terminal that can move its cursor (TERM is set and not "dumb"), and no host of
// the program prints elsewhere.
bool is_live_terminal();

// Returns true if the environment allows bold, dim and colours: NO_COLOR is not set, or empty (no-color.org).
bool styles_are_wanted();

// Returns the present size. LINES and COLUMNS, or 24 by 80, replace a size that the terminal does not know.
WindowSize window_size();

// Returns true if standard output accepts data at once. A terminal stopped with Ctrl-S does not.
bool is_writable();

// Writes all bytes to standard output, after flushing stdio. Gives up on an error, because nothing depends on the
// output.
void write_to_terminal(std::string_view bytes);

}  // namespace cadre::view
