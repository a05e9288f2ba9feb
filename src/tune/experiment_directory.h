// The names of files and directories in an experiment's directory. docs/formats.md describes the files.
// store/read_store.h names the store's own files, loggers/result_log.h the result files.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "cadre/value.h"
#include "tune/trial.h"

namespace cadre::tune {

// ---- Files of the experiment

inline constexpr const char* kPbtGlobalFile = "pbt_global.txt";
// Returns "pbt_policy_00003.txt".
std::string policy_file_name(std::string_view trial_id);

// ---- Names of a trial and its directory

// Returns "00003".
std::string trial_id(TrialIndex index);
// Returns "3", or with the values drawn from the search space, by path, "3_lr=0.1000,width=3".
std::string trial_tag(TrialIndex index, const Dict& sampled);
// Returns the trial with this tag. Throws StorageError if the text is not a tag.
TrialIndex trial_of_tag(std::string_view tag);
// Returns the tag as the name of a directory, at most 100 bytes: "00003_lr=0.1000,width=3".
std::string trial_directory_name(TrialIndex index, const Dict& sampled);

}  // namespace cadre::tune
