// The rows of a run's result files: rank 0's reports, with the columns of a trial's results as far as the controller
// knows them. Pure: rows depend only on the events, their times and the Run's actions, so that replaying a store gives
// the same rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "cadre/value.h"
#include "train/events.h"

namespace cadre::train {

// Values for the row of an earlier result.
struct Amendment {
  std::size_t number = 0;  // of the row, from 0
  Dict values = {};        // what was found, under "validation"
  Dict row = {};           // values of the row by which TensorBoard orders it
};
// Returns metrics of a report with what a validation has found.
Metrics with_validation(const Metrics& reported, const Metrics& validated);
// Returns what a validation adds to the row of its report; empty: nothing.
std::optional<Amendment> amendment_of(const ShowValidation& validation);

class ResultRows {
 public:
  // Handles an event and the resulting actions; `time` is the event's, in seconds since 1970. Returns the row of a new
  // result. Reported values stay unchanged, also under the name of a column.
  std::optional<Dict> add(const Event& event, const Actions& actions, double time);

 private:
  // Totals since the present group began, including the reports that it repeats.
  struct Life {
    std::int64_t iterations = 0;
    double time_s = 0;
  };

  Dict row_of(const ShowResult& result, double time) const;

  std::string hostname_ = {};  // of the controller's machine
  double iteration_began_ = 0;
  double time_this_iter_s_ = 0;  // of the last report
  double time_total_s_ = 0;      // of all results, each counted once
  Life life_;
};

}  // namespace cadre::train
