// The table of an experiment's trials, for the console and for `cadre show`. Pure: values in, cells out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cadre/tune/result.h"
#include "tune/console/status.h"
#include "view/table.h"

namespace cadre::tune::console {

// The number of metrics in the main table.
inline constexpr std::size_t kMainMetrics = 4;

// One trial; the objects it points to must outlive it.
struct TrialRow {
  std::string id = {};
  TrialStatus status = TrialStatus::pending;
  const Config* config = nullptr;
  const Metrics* last_result = nullptr;
  bool best = false;  // true: its id and metric are emphasised
};

// The parameters and metrics with columns.
struct TrialColumns {
  std::vector<std::string> parameters = {};  // paths in the configs
  std::vector<std::string> metrics = {};     // paths in the results; main metrics first
  std::string metric = {};                   // the experiment's; may be empty
};

// Returns a table of id, status, parameters, iteration, time and main metrics.
view::Table trial_table(const std::vector<TrialRow>& trials, const TrialColumns& columns, base::Encoding encoding);

view::Column id_column(const std::vector<TrialRow>& trials);
view::Column status_column(const std::vector<TrialRow>& trials);
// Returns the column of a metric; the experiment's `metric` is emphasised in the best trial's row.
view::Column metric_column(const std::vector<TrialRow>& trials, const std::string& path, const std::string& metric,
                           int rank, base::Encoding encoding);
// Return a column with a fixed head, of a key that every result has: its value, or a time in seconds.
view::Column result_column(const std::vector<TrialRow>& trials, const char* head, std::string_view key, int rank,
                           base::Encoding encoding);
view::Column seconds_column(const std::vector<TrialRow>& trials, const char* head, std::string_view key, int rank);

// Returns "2 RUNNING, 3 TERMINATED" in the order of kStatusOrder; `word` follows each number. Empty if all are 0.
std::string counts_text(const StatusCounts& counts, const char* separator = ", ", const char* word = "");
StatusCounts status_counts(const ResultGrid& grid);

view::Cell number_cell(std::string text);
// Returns the cell of a value: numbers with six digits; texts printable, and only the end of long ones.
view::Cell value_cell(const Value* value, base::Encoding encoding);
// Returns a column with a fixed head, which is short enough not to be shortened.
view::Column number_column(std::string head, int rank);

}  // namespace cadre::tune::console
