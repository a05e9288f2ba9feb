// progress.csv holds each cell of each row, whenever it is flushed and resumed; and any file can be resumed.
#include <algorithm>
#include <string>
#include <vector>

#include "base/csv.h"
#include "fuzz/fuzzed_value.h"
#include "fuzz/require.h"
#include "loggers/flat_row.h"
#include "loggers/progress_csv.h"
#include "support/temporary_directory.h"

using namespace cadre;
using fuzz::require;
using test_support::content_of;

namespace {

using Record = std::vector<std::string>;

// Returns the records of a file according to RFC 4180.
std::vector<Record> records_of(std::string_view text) {
  std::vector<Record> records;
  bool quoted = false;
  bool begins = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (begins) records.emplace_back(1);
    begins = false;
    Record& record = records.back();
    if (text[i] == '"' && quoted && i + 1 < text.size() && text[i + 1] == '"') {
      record.back() += text[i++];
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (text[i] == ',' && !quoted) {
      record.emplace_back();
    } else if (text[i] == '\n' && !quoted) {
      begins = true;
    } else {
      record.back() += text[i];
    }
  }
  return records;
}

std::string cell_of(const Value& value) {
  std::string quoted;
  base::append_csv_cell(quoted, value);
  const std::vector<Record> records = records_of(quoted + "\n");
  return records.front().front();
}

// Returns a row in which each key occurs once, as in a result.
Dict row_from(FuzzedDataProvider& input) {
  Metrics metrics;
  for (const auto& [key, value] : fuzz::dict_from(input)) metrics.set(key, value);
  Metrics row;
  for (const auto& [key, value] : loggers::flatten(metrics.dict())) row.set(key, value);
  return row.dict();
}

void check_content(const std::string& text, const std::vector<Dict>& rows) {
  const std::vector<Record> records = records_of(text);
  require(records.size() == rows.size() + 1, "a header and a record for each row");
  const Record& columns = records.front();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Record& record = records[i + 1];
    require(record.size() == columns.size(), "every record has every column");
    for (std::size_t column = 0; column < columns.size(); ++column) {
      const auto entry = std::ranges::find(rows[i], columns[column], &Dict::value_type::first);
      require(record[column] == (entry == rows[i].end() ? "" : cell_of(entry->second)), "a cell is its value");
    }
    for (const auto& [key, value] : rows[i])
      require(std::ranges::find(columns, key) != columns.end(), "every metric has a column");
  }
}

void check_rows(FuzzedDataProvider& input, const std::filesystem::path& path) {
  std::filesystem::remove(path);
  auto file = std::make_unique<loggers::ProgressCsv>(path);
  std::vector<Dict> rows;
  while (input.remaining_bytes() > 0) {
    Dict row = row_from(input);
    if (row.empty()) continue;
    file->add(rows.emplace_back(std::move(row)));
    if (input.ConsumeBool()) continue;
    file->flush();
    if (input.ConsumeBool()) continue;
    const auto stamp = file->stamp();
    file = std::make_unique<loggers::ProgressCsv>(path);
    require(file->resume(stamp), "a file is what it was");
  }
  file->flush();
  if (!rows.empty()) check_content(content_of(path), rows);
}

void check_any_file(FuzzedDataProvider& input, const std::filesystem::path& path) {
  const Dict row = row_from(input);
  test_support::write_bytes(path, input.ConsumeRemainingBytesAsString());
  loggers::ProgressCsv file(path);
  file.resume(std::nullopt);
  file.add(row);
  file.flush();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const test_support::TemporaryDirectory directory;
  FuzzedDataProvider input(data, size);
  const std::filesystem::path path = directory / "progress.csv";
  input.ConsumeBool() ? check_rows(input, path) : check_any_file(input, path);
  return 0;
}
