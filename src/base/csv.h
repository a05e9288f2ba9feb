// Comma-separated values as Python's csv module writes them with lines that end in "\n".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cadre/value.h"

namespace cadre::base {

// A value as a cell: null is empty, bools are True and False, lists and dictionaries are JSON text.
void append_csv_cell(std::string& out, const Value& value);
// Text as a cell, in quotes where it needs them.
void append_csv_text(std::string& out, std::string_view text);

// Where the record that begins at `begin` ends: at its "\n", or at the end of the text.
std::size_t csv_record_end(std::string_view text, std::size_t begin);
// The cells of a record, without its line end.
std::vector<std::string> csv_cells(std::string_view record);

}  // namespace cadre::base
