// The results of a study (cadre/tune/study.h), as those of an experiment.
#pragma once

#include <filesystem>
#include <vector>

#include "cadre/tune/result.h"
#include "tune/study_file.h"

namespace cadre::tune {

// `directory`: empty for a study in memory.
ResultGrid study_results(const std::filesystem::path& directory, const StudyHeader& header,
                         const std::vector<StudyTrial>& trials);

// Reads the study in a directory, which another process may have open. Needs no searcher. Throws StorageError.
ResultGrid read_study(const std::filesystem::path& directory);

}  // namespace cadre::tune
