// The results of one trial in a store, as whoever only looks reads them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "store/experiment_reader.h"

namespace cadre::test_support {

// The metrics as JSON, repeated steps left out.
inline std::vector<std::string> results_of(const std::filesystem::path& directory, std::int64_t trial) {
  const store::ExperimentReader reader(directory, store::ExperimentReader::Check::whole);
  std::vector<std::string> metrics;
  reader.visit({.result =
                    [&](const store::ResultRow& row) {
                      if (row.trial == trial && !row.repeated) metrics.push_back(row.metrics);
                    },
                .event = [](const store::EventRow&) {},
                .decision = [](const store::DecisionRow&) {}});
  return metrics;
}

}  // namespace cadre::test_support
