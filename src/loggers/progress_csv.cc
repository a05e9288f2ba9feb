#include "loggers/progress_csv.h"

#include <algorithm>

#include "base/csv.h"

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
  std::string text = header();
  if (written_columns_ > 0) {
    const std::string old = base::read_file(file_.path());
    const std::size_t body = std::min(base::csv_record_end(old, 0) + 1, old.size());
    text += padded(std::string_view(old).substr(body), columns_.size() - written_columns_);
  }
  file_.replace(text + pending_);
  written_columns_ = columns_.size();
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
