// The location, in an experiment's store, of data that a Result reads on demand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "cadre/tune/result.h"
#include "cadre/value.h"

namespace cadre::tune::detail {

// Sequence numbers of rows; see store::ResultRow.
struct ResultRows {
  std::vector<std::int64_t> own = {};     // the trial's results that count, in order
  std::vector<std::int64_t> donors = {};  // for each exploit, the result with the donor's checkpoint
  // Temporary directory that holds the store; empty: the store is in the experiment's directory.
  std::shared_ptr<const std::filesystem::path> copy = {};
  // The results of a study, which has no store. `own` is empty then.
  std::vector<Metrics> results = {};
};

// Calls `visit` as ResultGrid::for_each_result does, but of each trial only from the result with the index `first` on.
void visit_results(const ResultGrid& grid, const std::function<std::size_t(std::size_t trial)>& first,
                   const ResultGrid::Visit& visit);

}  // namespace cadre::tune::detail
