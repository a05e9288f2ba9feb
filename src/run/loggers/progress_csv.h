// progress.csv of a trial or a training run: a row for each result, a column for each metric. Readable by pandas while
// it grows.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "cadre/value.h"

namespace cadre::run {

// Appends rows. A metric that comes later widens the file: a column is added, and the earlier rows are empty in it. The
// file is then written anew, so metrics beyond kMostColumns that the first result did not have get no column.
class ProgressCsv {
 public:
  static constexpr std::size_t kMostColumns = 1000;

  // An existing file is replaced with the first row.
  explicit ProgressCsv(std::filesystem::path path) : file_(std::move(path)) {}
  // Goes on with an existing file (see base::AppendFile).
  bool resume(const std::optional<base::AppendFile::Stamp>& stamp);
  base::AppendFile::Stamp stamp() const { return file_.stamp(); }

  void add(const Dict& flat_row);
  // Writes what was added. After a StorageError it can be called again, and nothing is written twice.
  void flush();
  std::size_t waiting_bytes() const { return pending_.size(); }
  // Whether a metric got no column.
  bool lacks_columns() const { return lacks_columns_; }

 private:
  void add_columns(const Dict& flat_row);
  void rewrite();
  std::string header() const;

  base::AppendFile file_;
  std::vector<std::string> columns_;
  std::size_t written_columns_ = 0;  // those that the file has
  bool lacks_columns_ = false;
  std::string pending_;  // rows that were not written yet, with all columns
};

}  // namespace cadre::run
