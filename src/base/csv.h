// Comma-separated values as written by Python's csv module with "\n" line ends.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cadre/value.h"

namespace cadre::base {

// Appends a value as a cell: null is empty, bools are True and False, lists and dictionaries are JSON text.
void append_csv_cell(std::string& out, const Value& value);
// Appends text as a cell, quoted if needed.
void append_csv_text(std::string& out, std::string_view text);

// Returns the end of the record that begins at `begin`: the position of its "\n", or the end of the text.
std::size_t csv_record_end(std::string_view text, std::size_t begin);
// Returns the cells of a record, which is given without its line end.
std::vector<std::string> csv_cells(std::string_view record);

}  // namespace cadre::base
