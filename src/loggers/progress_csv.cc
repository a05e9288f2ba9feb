#include "loggers/progress_csv.h"

#include <algorithm>

#include "base/csv.h"
#include "loggers/flat_row.h"

namespace cadre::loggers {
namespace {

// Returns the rows with empty cells added to each.
std::string padded(std::string_view rows, std::size_t cells) {
  const std::string padding(cells, ',');
  std::string text;
  for (std::size_t begin = 0; begin < rows.size();) {
    const std::size_t end = base::csv_record_end(rows, begin);
    text.append(rows, begin, end - begin).append(padding).append("\n");
    begin = end + 1;
  }
  return text;
}

}  // namespace

bool ProgressCsv::resume(const std::optional<base::AppendFile::Stamp>& stamp) {
  if (!stamp) {
    file_.resume();
  } else if (!file_.resume(*stamp)) {
    return false;
  }
  if (file_.stamp().size == 0) return true;
  const std::string text = base::read_file(file_.path());
  columns_ = base::csv_cells(std::string_view(text).substr(0, base::csv_record_end(text, 0)));
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
    if (found != flat_row.end()) base::append_csv_cell(pending_, found->second);
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

// Replaces the file atomically by one with all columns.
void ProgressCsv::rewrite() {
  file_.replace(header() + written_rows() + pending_);
  written_columns_ = columns_.size();
}

// Returns the rows in the file, with all columns.
std::string ProgressCsv::written_rows() const {
  if (written_columns_ == 0) return {};
  const std::string old = base::read_file(file_.path());
  const std::size_t body = std::min(base::csv_record_end(old, 0) + 1, old.size());
  return padded(std::string_view(old).substr(body), columns_.size() - written_columns_);
}

void ProgressCsv::amend(const Amendments& amendments) {
  if (written_columns_ == 0) return;
  Amendments flat;
  for (const auto& [number, values] : amendments) add_columns(flat[number] = flatten(values));
  const std::string rows = written_rows();
  std::string text = header();
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < rows.size(); ++number) {
    const std::size_t end = base::csv_record_end(rows, begin);
    const std::string_view record = std::string_view(rows).substr(begin, end - begin);
    const auto found = flat.find(number);
    text += found == flat.end() ? std::string(record) : amended_record(record, found->second);
    text += '\n';
    begin = end + 1;
  }
  file_.replace(text);
  written_columns_ = columns_.size();
}

std::string ProgressCsv::amended_record(std::string_view record, const Dict& flat_values) const {
  std::vector<std::string> cells = base::csv_cells(record);
  cells.resize(columns_.size());
  std::string text;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (i > 0) text += ',';
    if (const Value* const value = find_entry(flat_values, columns_[i])) {
      base::append_csv_cell(text, *value);
    } else {
      base::append_csv_text(text, cells[i]);
    }
  }
  return text;
}

std::string ProgressCsv::header() const {
  std::string text;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (i > 0) text += ',';
    base::append_csv_text(text, columns_[i]);
  }
  return text + '\n';
}

}  // namespace cadre::loggers
