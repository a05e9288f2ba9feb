// The location, in an experiment's store, of data that a Result reads on demand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

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

}  // namespace cadre::tune::detail
