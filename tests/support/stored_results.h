// The results of one trial in a store, as ExperimentReader returns them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "store/experiment_reader.h"

namespace cadre::test_support {

// Returns the metrics as JSON, without repeated steps.
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
