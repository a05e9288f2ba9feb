// Invariants of published experiments and training runs.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "storage/uri.h"
#include "store/tables.h"

namespace cadre::survival {

// Describes the fault of a checkpoint whose files lie in the directory; empty: none.
using CheckpointCheck = std::function<std::string(const store::CheckpointRow&, const std::filesystem::path& files)>;

// Returns faults, a line each. Checks that the published run can be read and has each checkpoint that it lists.
std::vector<std::string> faults_of_published(const storage::Uri& uri, const CheckpointCheck& check);
// Does the same for a finished run, of which everything in the working directory, and no unlisted file, must be
// published.
std::vector<std::string> faults_of_all_published(const storage::Uri& uri,
                                                 const std::filesystem::path& working_directory,
                                                 const CheckpointCheck& check);

}  // namespace cadre::survival
