// The implementation of ResultGrid::from_directory: reads a result for each trial from the experiment's store.
#pragma once

#include <filesystem>
#include <memory>

#include "cadre/tune/result.h"
#include "store/experiment_reader.h"

namespace cadre::tune {

// Reads the results of the experiment in `directory`. `check`: Check::rows if the whole store was checked before.
// `copy`: a temporary copy to remove when the results are gone; they keep it alive.
ResultGrid read_results(const std::filesystem::path& directory, store::ExperimentReader::Check check,
                        std::shared_ptr<const std::filesystem::path> copy = {});

}  // namespace cadre::tune
