// ResultGrid::from_directory: a result for each trial from the experiment's store.
#pragma once

#include <filesystem>

#include "cadre/tune/result.h"
#include "store/experiment_reader.h"

namespace cadre::tune {

// The same without the look at the whole store, where that was done before.
ResultGrid read_results(const std::filesystem::path& directory, store::ExperimentReader::Check check);

}  // namespace cadre::tune
