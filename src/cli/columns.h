// Values of trials by the name of a column: what tables show, and what trials are sorted and filtered by.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cadre/tune/result.h"

namespace cadre::cli {

// trial_id, status, error, attempts, failures, results, exploits; a metric of the last result; a path of the config,
// also as "config/lr" where a metric has the same name. Nothing where the trial lacks it.
std::optional<Value> value_of(const tune::Result& trial, const std::string& column);

// Paths of what the search space draws, and then of what exploits have changed beside it.
std::vector<std::string> parameters_of(const tune::ResultGrid& grid);
// Paths of the numbers that trials have reported themselves last: the experiment's metric first.
std::vector<std::string> metrics_of(const tune::ResultGrid& grid);

// "column op value": <, <=, ==, !=, >= or >, and a number, true, false, null or text, with or without quotes.
class Filter {
 public:
  explicit Filter(const std::string& text);  // throws InvalidArgument
  // A trial without the column does not match.
  bool operator()(const tune::Result& trial) const;
  const std::string& column() const { return column_; }

 private:
  std::string column_;
  std::string operation_;
  Value value_;
};

// Throws InvalidArgument that names the columns that no trial has, what may have been meant, and those that there are.
// Experiments without trials have all columns.
void check_columns(const tune::ResultGrid& grid, const std::vector<std::string>& columns);

struct Order {
  std::vector<std::string> filters = {};
  std::string sort = {};  // column; empty: as the trials were made
  bool descending = false;
  std::size_t limit = 0;  // 0: none
};
// The trials that are to be shown, in their order: without the column they are last. Throws InvalidArgument for a
// column that no trial has.
std::vector<const tune::Result*> choose_trials(const tune::ResultGrid& grid, const Order& order);

}  // namespace cadre::cli
