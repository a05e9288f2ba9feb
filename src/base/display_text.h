// Text for terminals. Names, values and messages come from users and trials: characters that a terminal would
// interpret are escaped before they are shown or logged.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cadre::base {

// The characters that an output accepts: ASCII only, or UTF-8.
enum class Encoding { ascii, utf8 };

// Returns the encoding of the environment: utf8 if the first non-empty variable of LC_ALL, LC_CTYPE and LANG names
// it.
Encoding encoding_of_environment();

// Returns `text` on one line: a new line becomes "\n", another control character "\x1b", an invalid UTF-8 byte
// "\xff", and a character without a width of its own or that changes the writing direction "\u{202e}". With
// Encoding::ascii every non-ASCII character becomes "?". Accents that combine with the character before them stay.
std::string printable(std::string_view text, Encoding encoding);

// Does the same for each line; the new lines between them stay.
std::string printable_lines(std::string_view text, Encoding encoding);

// Returns the width of `text`, which must be printable, in terminal columns.
std::size_t display_width(std::string_view text);

// Return the first or the last characters of printable text that fit into `columns` columns, with an ellipsis for the
// omitted part. Characters are never split. 0 columns give an empty text.
std::string first_columns(std::string_view text, std::size_t columns, Encoding encoding);
std::string last_columns(std::string_view text, std::size_t columns, Encoding encoding);

}  // namespace cadre::base
