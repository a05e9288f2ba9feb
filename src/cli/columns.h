// Values of trials by column name, for showing, sorting and filtering trials.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cadre/tune/result.h"

namespace cadre::cli {

// Returns a trial's value in a column; empty if the trial has none. Columns: trial_id, status, error, attempts,
// failures, results, exploits; a metric of the last result; a path of the config, also as "config/lr" if a metric has
// the same name.
std::optional<Value> value_of(const tune::Result& trial, const std::string& column);

// Returns the paths of sampled parameters, then of other parameters changed by exploits.
std::vector<std::string> parameters_of(const tune::ResultGrid& grid);
// Returns the paths of numeric metrics in the trials' last results, the experiment's metric first.
std::vector<std::string> metrics_of(const tune::ResultGrid& grid);

// A filter "column op value": op is <, <=, ==, !=, >= or >; value is a number, true, false, null or text, with or
// without quotes. Text equals a value that reads the same: trial_id == 00003.
class Filter {
 public:
  explicit Filter(const std::string& text);  // throws InvalidArgument
  // Returns true if the trial matches; a trial without the column does not.
  bool operator()(const tune::Result& trial) const;
  const std::string& column() const { return column_; }

 private:
  std::string column_;
  std::string operation_;
  Value value_;
  Value text_;  // the value as text, without quotes
};

// Throws InvalidArgument if no trial has one of the columns; the message names these columns, similar names and the
// existing columns. Does not throw for experiments without trials.
void check_columns(const tune::ResultGrid& grid, const std::vector<std::string>& columns);

struct Order {
  std::vector<std::string> filters = {};
  std::string sort = {};  // column; empty: in order of creation
  bool descending = false;
  std::size_t limit = 0;  // 0: none
};
// Returns the trials to show, in order; trials without the column come last. Throws InvalidArgument if no trial has
// the column.
std::vector<const tune::Result*> choose_trials(const tune::ResultGrid& grid, const Order& order);

}  // namespace cadre::cli
