// Where experiments and training runs lie when nobody says otherwise.
#pragma once

#include <filesystem>

namespace cadre::run {

// ~/cadre_results. Throws NotFound when there is no HOME.
std::filesystem::path default_storage_path();

}  // namespace cadre::run
