// Output of the commands. Names and texts of users and trials are made printable here (see base/display_text.h); only
// JSON, CSV, and paths written to something other than a terminal stay unchanged.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cadre/value.h"
#include "view/table.h"

namespace cadre::cli {

using view::Cell;
using view::Column;
using view::Style;
using view::Table;

// Returns the terminal's character encoding.
base::Encoding encoding();

// Return untrusted text in printable form: on one line, and with its line ends.
std::string shown(std::string_view text);
std::string shown_lines(std::string_view text);
// Returns a number in its usual form, text as it is, any other value as JSON; on one line.
std::string value_text(const Value& value);
// Returns a text such as "lr=0.1, layers={"width": 3}".
std::string values_text(const Dict& values);

Cell text_cell(std::string_view text, Style style = Style::plain);
Cell number_cell(std::string text);
// Formats numbers with six digits.
Cell value_cell(const Value* value);
// Returns a column without cells; makes the head printable.
Column column(std::string_view head, int rank, bool number = false);

// Returns "2026-11-21 18:00" in local time; empty for 0.
std::string time_text(double seconds_since_1970);

// The output of a command, collected and written to standard output at once. write() throws StorageError if it fails.
class Page {
 public:
  Page();

  void heading(const std::string& text);  // printable
  // Adds "  label       text", wrapping long text; nothing if the text is empty.
  void field(const std::string& label, const std::string& text);
  // Adds a title, and below it an aligned line "  key  text" for each pair; nothing if there are none.
  void pairs(const std::string& title, const std::vector<std::pair<std::string, std::string>>& pairs);
  // Adds a table that fits the terminal's width; up to 200 columns wide if the output is not a terminal.
  void table(const Table& table);
  void line(const std::string& text, Style style = Style::plain);
  // Returns the number of table rows that fit into the window below the present content, leaving room for `others`
  // lines after the table; at least 5. Empty if the output is not a terminal.
  std::optional<std::size_t> rows_that_fit(std::size_t others) const;
  void write() const;

 private:
  void add_field(const std::string& label, std::size_t label_width, std::string_view text);
  std::string styled(const std::string& text, Style style) const;

  std::size_t width_;
  std::optional<std::size_t> lines_;  // height of the window
  bool styles_;
  std::string text_;
};

// Writes one JSON document on a line of its own.
void write_json(const Value& document);
// Writes bytes unchanged.
void write_raw(std::string_view bytes);
// Writes a path on a line of its own: printable on a terminal, otherwise unchanged.
void write_path(const std::string& path);

}  // namespace cadre::cli
