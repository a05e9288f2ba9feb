// Tables in boxes that fit a width.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/display_text.h"

namespace cadre::tune::console {

// How a piece of text is set off where a terminal can do that.
enum class Style { plain, bold, dim, good, bad };

struct Span {
  std::string text;  // printable
  Style style = Style::plain;
};
// One line of what is shown.
using Line = std::vector<Span>;
using Lines = std::vector<Line>;

std::size_t display_width(const Line& line);
// The line without any style.
std::string plain_text(const Line& line);
// The line in at most so many columns (see display_text.h).
Line first_columns(const Line& line, std::size_t columns, base::Encoding encoding);

struct Cell {
  std::string text = {};  // printable
  Style style = Style::plain;
  bool number = false;  // stands to the right, and is never shortened: a part of a number is another one
};

struct Column {
  Cell head;  // stands where the cells do
  // Where not all columns fit, those of the highest rank go first, of the same rank the last one. Those of rank 0 stay.
  int rank = 0;
  std::vector<Cell> cells = {};  // one for each row
};

struct Table {
  std::string title = {};  // printable, in the upper border; may be empty
  std::vector<Column> columns = {};
};

// Lines besides the rows: the borders, the head and the rule below it.
constexpr std::size_t kTableFrameLines = 4;

// The table in at most `width` columns of the terminal: texts of more than 20 columns are shortened from their
// beginning, to as few as 10 where that lets all columns fit, and then columns are left out. If even those of rank 0 do
// not fit, the lines are cut.
Lines format_table(const Table& table, std::size_t width, base::Encoding encoding);

}  // namespace cadre::tune::console
