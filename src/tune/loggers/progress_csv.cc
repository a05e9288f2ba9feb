#include "tune/loggers/progress_csv.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"

namespace cadre::tune {
namespace {

void flatten_into(Dict& flat, const std::string& prefix, const Dict& entries) {
  Dict nested;
  for (const auto& [key, value] : entries) {
    if (value.is_dict()) {
      nested.emplace_back(prefix + key, value);
    } else {
      flat.emplace_back(prefix + key, value);
    }
  }
  for (const auto& [path, value] : nested) flatten_into(flat, path + "/", value.dict());
}

void append_quoted(std::string& out, std::string_view text) {
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

// The end of the record that begins at `begin`: the first line end outside quotes.
std::size_t record_end(std::string_view text, std::size_t begin) {
  bool quoted = false;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (text[i] == '\n' && !quoted) return i;
  }
  return text.size();
}

// Rows with empty cells added to each.
std::string padded(std::string_view rows, std::size_t cells) {
  const std::string padding(cells, ',');
  std::string text;
  for (std::size_t begin = 0; begin < rows.size();) {
    const std::size_t end = record_end(rows, begin);
    text.append(rows, begin, end - begin).append(padding).append("\n");
    begin = end + 1;
  }
  return text;
}

std::vector<std::string> cells_of(std::string_view record) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < record.size(); ++i) {
    if (record[i] == '"') {
      if (quoted && i + 1 < record.size() && record[i + 1] == '"') {
        cells.back() += record[i++];  // two stand for one
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

}  // namespace

void append_csv_cell(std::string& out, const Value& value) {
  if (value.is_null()) return;
  if (value.is_bool()) {
    out += value.get<bool>() ? "True" : "False";
  } else if (value.is_double()) {
    base::append_python_float(out, value.get<double>());
  } else if (value.is_string()) {
    append_quoted(out, value.get<std::string>());
  } else if (value.is_integer()) {
    out += std::to_string(value.get<std::int64_t>());
  } else {
    append_quoted(out, to_json(value));
  }
}

Dict flatten(const Dict& entries) {
  Dict flat;
  flatten_into(flat, "", entries);
  return flat;
}

bool ProgressCsv::resume(const std::optional<base::AppendFile::Stamp>& stamp) {
  if (!stamp) {
    file_.resume();
  } else if (!file_.resume(*stamp)) {
    return false;
  }
  if (file_.stamp().size == 0) return true;
  const std::string text = base::read_file(file_.path());
  columns_ = cells_of(std::string_view(text).substr(0, record_end(text, 0)));
  written_columns_ = columns_.size();
  return true;
}

void ProgressCsv::add(const Dict& flat_row) {
  const std::size_t columns_before = columns_.size();
  add_columns(flat_row);
  if (columns_.size() > columns_before) pending_ = padded(pending_, columns_.size() - columns_before);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (i > 0) pending_ += ',';
    // A row nearly always has its values in the order of the columns.
    const bool in_place = i < flat_row.size() && flat_row[i].first == columns_[i];
    const auto found = in_place ? flat_row.begin() + static_cast<std::ptrdiff_t>(i)
                                : std::ranges::find(flat_row, columns_[i], &Dict::value_type::first);
    if (found != flat_row.end()) append_csv_cell(pending_, found->second);
  }
  pending_ += '\n';
}

void ProgressCsv::flush() {
  if (pending_.empty()) return;
  if (written_columns_ < columns_.size()) {
    rewrite();
  } else {
    file_.append(pending_);
  }
  pending_.clear();
}

void ProgressCsv::add_columns(const Dict& flat_row) {
  const std::size_t most = columns_.empty() ? flat_row.size() : std::max(columns_.size(), kMostColumns);
  for (std::size_t i = 0; i < flat_row.size(); ++i) {
    const std::string& key = flat_row[i].first;
    if (i < columns_.size() && columns_[i] == key) continue;
    if (std::ranges::find(columns_, key) != columns_.end()) continue;
    if (columns_.size() == most) {
      lacks_columns_ = true;
    } else {
      columns_.push_back(key);
    }
  }
}

// The whole file with all columns, in one step.
void ProgressCsv::rewrite() {
  std::string text = header();
  if (written_columns_ > 0) {
    const std::string old = base::read_file(file_.path());
    const std::size_t body = std::min(record_end(old, 0) + 1, old.size());
    text += padded(std::string_view(old).substr(body), columns_.size() - written_columns_);
  }
  file_.replace(text + pending_);
  written_columns_ = columns_.size();
}

std::string ProgressCsv::header() const {
  std::string text;
  for (const std::string& column : columns_) {
    if (!text.empty()) text += ',';
    append_quoted(text, column);
  }
  return text + '\n';
}

}  // namespace cadre::tune
