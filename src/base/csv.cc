#include "base/csv.h"

#include "base/json.h"

namespace cadre::base {

void append_csv_cell(std::string& out, const Value& value) {
  if (value.is_null()) return;
  if (value.is_bool()) {
    out += value.get<bool>() ? "True" : "False";
  } else if (value.is_double()) {
    append_python_float(out, value.get<double>());
  } else if (value.is_string()) {
    append_csv_text(out, value.get<std::string>());
  } else if (value.is_integer()) {
    out += std::to_string(value.get<std::int64_t>());
  } else {
    append_csv_text(out, cadre::to_json(value));
  }
}

void append_csv_text(std::string& out, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

std::size_t csv_record_end(std::string_view text, std::size_t begin) {
  bool quoted = false;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (text[i] == '\n' && !quoted) return i;
  }
  return text.size();
}

std::vector<std::string> csv_cells(std::string_view record) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < record.size(); ++i) {
    if (record[i] == '"') {
      if (quoted && i + 1 < record.size() && record[i + 1] == '"') {
        cells.back() += record[i++];  // a doubled quote is one quote
      } else {
        quoted = !quoted;
      }
    } else if (record[i] == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += record[i];
    }
  }
  return cells;
}

}  // namespace cadre::base
