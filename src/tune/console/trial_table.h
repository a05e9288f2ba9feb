// The table of an experiment's trials, while it runs and for whoever looks at it later. Pure: values in, cells out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cadre/tune/result.h"
#include "tune/console/status.h"
#include "tune/console/table.h"

namespace cadre::tune::console {

// So many metrics are in the table of the trials.
inline constexpr std::size_t kMainMetrics = 4;

// One trial; what it points to must outlive it.
struct TrialRow {
  std::string id = {};
  TrialStatus status = TrialStatus::pending;
  const Config* config = nullptr;
  const Metrics* last_result = nullptr;
  bool best = false;  // its id and its metric are set off
};

// What the columns show.
struct TrialColumns {
  std::vector<std::string> parameters = {};  // paths in the configs
  std::vector<std::string> metrics = {};     // paths in the results; the main ones come first
  std::string metric = {};                   // that of the experiment; may be empty
};

// Id, status, parameters, iteration, time and main metrics.
Table trial_table(const std::vector<TrialRow>& trials, const TrialColumns& columns, base::Encoding encoding);

Column id_column(const std::vector<TrialRow>& trials);
Column status_column(const std::vector<TrialRow>& trials);
// A metric, by its path.
Column metric_column(const std::vector<TrialRow>& trials, const std::string& path, const std::string& metric, int rank,
                     base::Encoding encoding);
// Under a head of our own: what every result has, as it is, or a time in seconds.
Column result_column(const std::vector<TrialRow>& trials, const char* head, std::string_view key, int rank,
                     base::Encoding encoding);
Column seconds_column(const std::vector<TrialRow>& trials, const char* head, std::string_view key, int rank);

// "2 RUNNING, 3 TERMINATED" in the order of kStatusOrder; `word` stands between number and status. Empty where all
// are 0.
std::string counts_text(const StatusCounts& counts, const char* separator = ", ", const char* word = "");
StatusCounts status_counts(const ResultGrid& grid);

Cell number_cell(std::string text);
// A value as the cell of a table: numbers with six digits, texts printable and without their beginning if it is far
// away.
Cell value_cell(const Value* value, base::Encoding encoding);
// A head of our own, which is short enough to stay as it is.
Column number_column(std::string head, int rank);

}  // namespace cadre::tune::console
