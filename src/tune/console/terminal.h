// The terminal behind standard output: what it can do, how large it is, and how to write to it.
#pragma once

#include <string_view>

#include "tune/console/screen.h"

namespace cadre::tune::console {

// Whether standard output is a terminal that knows how to move its cursor (TERM is set and not "dumb").
bool is_live_terminal();

// Whether the environment allows bold, dim and colours: NO_COLOR is not set, or empty (no-color.org).
bool styles_are_wanted();

// Asked anew each time. LINES and COLUMNS, or 24 by 80, where the terminal does not know.
WindowSize window_size();

// Whether standard output takes something at once. A terminal that was stopped with Ctrl-S does not.
bool is_writable();

// Writes everything to standard output, after what stdio still holds. Gives up when it fails: nothing depends on it.
void write_to_terminal(std::string_view bytes);

}  // namespace cadre::tune::console
