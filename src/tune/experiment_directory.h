// The names of what lies in an experiment's directory, and where experiments lie. docs/formats.md describes the files.
// The store's own files are named in store/read_store.h, result files in run/loggers/result_log.h.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "cadre/value.h"
#include "tune/trial.h"

namespace cadre::tune {

// ---- Of the experiment

inline constexpr const char* kPbtGlobalFile = "pbt_global.txt";
// "pbt_policy_00003.txt"
std::string policy_file_name(std::string_view trial_id);

// ---- Of a trial, in its own directory

// "00003"
std::string trial_id(TrialIndex index);
// "3", "3_lr=0.1000,width=3": with what was drawn from the search space, by path.
std::string trial_tag(TrialIndex index, const Dict& sampled);
// The trial with this tag. Throws StorageError for a text that is no tag.
TrialIndex trial_of_tag(std::string_view tag);
// "00003_lr=0.1000,width=3": the tag as the name of a directory, at most 100 bytes.
std::string trial_directory_name(TrialIndex index, const Dict& sampled);

// ---- Where they lie

// Whether a directory holds an experiment. False also for one that cannot be looked at.
bool holds_experiment(const std::filesystem::path& directory);

}  // namespace cadre::tune
