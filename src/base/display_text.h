// Text as a terminal shows it. Names, values and messages come from users and trials: whatever a terminal would act on
// is made visible before it is drawn or logged.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cadre::base {

// What may be written: ASCII only, or UTF-8.
enum class Encoding { ascii, utf8 };

// That of the environment: utf8 where the first of LC_ALL, LC_CTYPE and LANG that is set and not empty names it.
Encoding encoding_of_environment();

// `text` on one line: a new line is "\n", another control character "\x1b", a byte that is no UTF-8 "\xff", a character
// that has no place of its own or changes the direction of writing "\u{202e}". With Encoding::ascii every character
// beyond ASCII is "?". Accents that combine with the character before them stay.
std::string printable(std::string_view text, Encoding encoding);

// The same of each line; the new lines between them stay.
std::string printable_lines(std::string_view text, Encoding encoding);

// In how many columns a terminal shows `text`, which must be printable.
std::size_t display_width(std::string_view text);

// Printable text in at most so many columns: the first ones, or the last ones, and an ellipsis for what is left out. No
// character is cut in two. 0 columns are nothing at all.
std::string first_columns(std::string_view text, std::size_t columns, Encoding encoding);
std::string last_columns(std::string_view text, std::size_t columns, Encoding encoding);

}  // namespace cadre::base
