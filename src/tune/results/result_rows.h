// Where an experiment's store has what a Result reads only when it is asked for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

namespace cadre::tune::detail {

// Sequence numbers of rows, see store::ResultRow.
struct ResultRows {
  std::vector<std::int64_t> own = {};     // the trial's results that count, in order
  std::vector<std::int64_t> donors = {};  // for each exploit, the result with the donor's checkpoint
  // The directory for temporary files that the store is in; empty: it is where it is.
  std::shared_ptr<const std::filesystem::path> copy = {};
};

}  // namespace cadre::tune::detail
