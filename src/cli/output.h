// What the commands write. Names and texts of users and trials become printable here (see
// base/display_text.h); only JSON, CSV and paths that are no terminal's stay as they are.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cadre/value.h"
#include "tune/console/table.h"

namespace cadre::cli {

using tune::console::Cell;
using tune::console::Column;
using tune::console::Style;
using tune::console::Table;

// What the terminal's characters are.
base::Encoding encoding();

// Text of others on one line, and text with its line ends.
std::string shown(std::string_view text);
std::string shown_lines(std::string_view text);
// A number as it is written, text as it is, everything else as JSON; on one line.
std::string value_text(const Value& value);
// "lr=0.1, layers={"width": 3}"
std::string values_text(const Dict& values);

Cell text_cell(std::string_view text, Style style = Style::plain);
Cell number_cell(std::string text);
// Numbers with six digits.
Cell value_cell(const Value* value);
// An empty column; the head is shown.
Column column(std::string_view head, int rank, bool number = false);

// "2026-11-21 18:00", local time; empty for 0.
std::string time_text(double seconds_since_1970);

// Everything that a command writes to standard output, in the end in one go. Throws StorageError when it cannot be
// written.
class Page {
 public:
  Page();

  void heading(const std::string& text);  // printable
  // "  label       text", where text that is too wide goes on in the next line. Nothing where it is empty.
  void field(const std::string& label, const std::string& text);
  // A title, and below it "  key  text" for each, the texts below each other. Nothing where there are none.
  void pairs(const std::string& title, const std::vector<std::pair<std::string, std::string>>& pairs);
  // In as many columns as the terminal has; elsewhere all that there is up to 200 columns.
  void table(const Table& table);
  void line(const std::string& text, Style style = Style::plain);
  // How many rows of a table fit into the window below what is on the page, where `others` further lines are to follow
  // the table; at least a few. Empty where what is written is no window.
  std::optional<std::size_t> rows_that_fit(std::size_t others) const;
  void write() const;

 private:
  void add_field(const std::string& label, std::size_t label_width, std::string_view text);
  std::string styled(const std::string& text, Style style) const;

  std::size_t width_;
  std::optional<std::size_t> lines_;  // of the window
  bool styles_;
  std::string text_;
};

// One JSON document on a line of its own.
void write_json(const Value& document);
// Bytes as they are.
void write_raw(std::string_view bytes);
// A path on a line of its own: as it is for programs, printable on a terminal.
void write_path(const std::string& path);

}  // namespace cadre::cli
