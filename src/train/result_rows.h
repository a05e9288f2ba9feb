// The rows of a run's result files: what rank 0 has reported, and the columns that a trial's results have too, as far
// as the controller knows them. Pure: they follow from the events, their times and what the Run made of them, so that
// the events of a store lead to the same rows again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cadre/value.h"
#include "train/events.h"

namespace cadre::train {

class ResultRows {
 public:
  // Takes an event and the actions that followed from it; `time` is the event's, in seconds since 1970. Returns the row
  // of a result that nobody has seen yet. What the function has reported stays as it is, also under the name of a
  // column.
  std::optional<Dict> see(const Event& event, const Actions& actions, double time);

 private:
  // Since the present group began, with the reports that it repeats.
  struct Life {
    std::int64_t iterations = 0;
    double time_s = 0;
  };

  Dict row_of(const ShowResult& result, double time) const;

  std::string hostname_ = {};  // of the controller's machine
  double iteration_began_ = 0;
  double time_this_iter_s_ = 0;  // of the last report
  double time_total_s_ = 0;      // of all results, each of them once
  Life life_;
};

}  // namespace cadre::train
