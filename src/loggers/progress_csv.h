// progress.csv of a trial or a training run: a row for each result, a column for each metric. pandas can read it while
// it grows.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "cadre/value.h"
#include "loggers/amendments.h"

namespace cadre::loggers {

// Appends rows. A new metric adds a column, in which earlier rows are empty. The whole file is rewritten then, so
// metrics that the first result did not have get no column beyond kMostColumns.
class ProgressCsv {
 public:
  static constexpr std::size_t kMostColumns = 1000;

  // An existing file is replaced with the first row.
  explicit ProgressCsv(std::filesystem::path path) : file_(std::move(path)) {}
  // Continues an existing file (see base::AppendFile); without a stamp, the file as it is. Returns false if the file
  // does not match the stamp.
  bool resume(const std::optional<base::AppendFile::Stamp>& stamp);
  base::AppendFile::Stamp stamp() const { return file_.stamp(); }

  void add(const Dict& flat_row);
  // Writes the added rows. After a StorageError it can be called again, and nothing is written twice.
  void flush();
  // Replaces the file, to which everything was written, by one with more values in its rows. Can be repeated after a
  // StorageError.
  void amend(const Amendments& amendments);
  std::size_t waiting_bytes() const { return pending_.size(); }
  // Returns true if a metric got no column.
  bool lacks_columns() const { return lacks_columns_; }

 private:
  void add_columns(const Dict& flat_row);
  void rewrite();
  std::string written_rows() const;
  std::string amended_record(std::string_view record, const Dict& flat_values) const;
  std::string header() const;

  base::AppendFile file_;
  std::vector<std::string> columns_;
  std::size_t written_columns_ = 0;  // number of columns in the file
  bool lacks_columns_ = false;
  std::string pending_;  // rows that were not written yet, with all columns
};

}  // namespace cadre::loggers
