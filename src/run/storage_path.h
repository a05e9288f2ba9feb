// The default directory of experiments and training runs.
#pragma once

#include <filesystem>

namespace cadre::run {

// Returns ~/cadre_results. Throws NotFound if HOME is not set.
std::filesystem::path default_storage_path();

}  // namespace cadre::run
