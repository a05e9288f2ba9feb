// Tables in boxes, fitted to a width.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/display_text.h"

namespace cadre::view {

// The style of a piece of text on a terminal.
enum class Style { plain, bold, dim, good, bad };

struct Span {
  std::string text;  // printable
  Style style = Style::plain;
};
// One line of output.
using Line = std::vector<Span>;
using Lines = std::vector<Line>;

std::size_t display_width(const Line& line);
// Returns the text of the line without styles.
std::string plain_text(const Line& line);
// Cuts the line to at most `columns` columns (see display_text.h).
Line first_columns(const Line& line, std::size_t columns, base::Encoding encoding);

struct Cell {
  std::string text = {};  // printable
  Style style = Style::plain;
  bool number = false;  // right-aligned, and never shortened, because a part of a number is a different number
};

struct Column {
  Cell head;  // aligned like the cells
  // If not all columns fit, those of the highest rank are left out first, among equal ranks the last one. Columns of
  // rank 0 stay.
  int rank = 0;
  std::vector<Cell> cells = {};  // one for each row
  // A text that is shortened keeps its end, which tells paths and names apart, or its beginning.
  bool keeps_beginning = false;
};

struct Table {
  std::string title = {};  // printable, in the upper border; may be empty
  std::vector<Column> columns = {};
};

// Lines of a table besides its rows: the borders, the head and the rule below it.
constexpr std::size_t kTableFrameLines = 4;

// Formats the table for at most `width` columns of the terminal: shortens texts of more than 20 columns, to as few as
// 10 if that lets all columns fit, and then leaves out columns. If even the columns of rank 0
// do not fit, cuts the lines.
Lines format_table(const Table& table, std::size_t width, base::Encoding encoding);

}  // namespace cadre::view
