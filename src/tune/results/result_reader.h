// ResultGrid::from_directory: a result for each trial from the experiment's store.
#pragma once

#include <filesystem>
#include <memory>

#include "cadre/tune/result.h"
#include "store/experiment_reader.h"

namespace cadre::tune {

// The same of a directory, without the look at the whole store where that was done before. A copy that is to be removed
// stays as long as the results.
ResultGrid read_results(const std::filesystem::path& directory, store::ExperimentReader::Check check,
                        std::shared_ptr<const std::filesystem::path> copy = {});

}  // namespace cadre::tune
