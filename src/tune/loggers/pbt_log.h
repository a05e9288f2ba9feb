// pbt_global.txt and pbt_policy_<trial id>.txt: the exploits, as one JSON line each in the layout of Ray Tune:
//   [target tag, donor tag, target iteration, donor iteration, donor config, new config]
// A policy file holds the whole history of configs that led to its trial, for PopulationBasedTrainingReplay. The donor
// iteration is that of the checkpoint that the target continues from.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "cadre/tune/schedulers.h"
#include "tune/events.h"
#include "tune/experiment_directory.h"

namespace cadre::tune {

class PbtLog {
 public:
  // Existing files are replaced by the first line written to each.
  explicit PbtLog(std::filesystem::path experiment_directory)
      : directory_(std::move(experiment_directory)), global_(directory_ / kPbtGlobalFile) {}

  void add(const LogExploit& exploit, const Trial& target, const Trial& donor);
  // `stamp` returns the state of pbt_global.txt. `resume` continues the file from that state and rewrites the policy
  // files, which follow from it; it returns false if the file has changed.
  base::AppendFile::Stamp stamp() const { return global_.stamp(); }
  bool resume(const base::AppendFile::Stamp& stamp, const std::vector<Trial>& trials);

  // Writes the added lines. After a StorageError it can be called again; nothing is written twice.
  void flush();

 private:
  void remember(const std::string& line, TrialIndex target, TrialIndex donor, const std::string& target_id);
  void write_policies();

  std::filesystem::path directory_;
  base::AppendFile global_;
  bool global_is_new_ = true;
  std::string pending_;                         // lines for pbt_global.txt that are not written yet
  std::map<TrialIndex, std::string> policies_;  // lines of each trial's policy file
  std::map<TrialIndex, std::string> changed_;   // trials whose policy files are not written yet, and their ids
};

}  // namespace cadre::tune
