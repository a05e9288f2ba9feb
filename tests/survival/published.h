// Invariants of what is published of an experiment or a training run.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "storage/uri.h"
#include "store/tables.h"

namespace cadre::survival {

// Says what is wrong with a checkpoint whose files lie in the directory; empty: nothing.
using CheckpointCheck = std::function<std::string(const store::CheckpointRow&, const std::filesystem::path& files)>;

// Each fault in a line. What is published can be read, and has each checkpoint that it lists.
std::vector<std::string> faults_of_published(const storage::Uri& uri, const CheckpointCheck& check);
// The same after the run has come to its end: then it is all that the working directory has, and nothing that nobody
// lists.
std::vector<std::string> faults_of_all_published(const storage::Uri& uri,
                                                 const std::filesystem::path& working_directory,
                                                 const CheckpointCheck& check);

}  // namespace cadre::survival
