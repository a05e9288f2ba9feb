// pbt_policy_<trial id>.txt as a schedule of configs: files that loggers/pbt_log.h writes, and those of Ray Tune.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cadre/tune/schedulers.h"

namespace cadre::tune {

// [target tag, donor tag, target iteration, donor iteration, donor config, new config]
struct PolicyLine {
  std::string target;
  std::string donor;
  std::int64_t target_iteration;
  std::int64_t donor_iteration;
  Config donor_config;
  Config new_config;
};

// The lines of a policy file that belong to the history of its trial, in their order: the last one, and each line above
// whose target is the donor of the next one that counts, up to the first that is not. (Ray Tune keeps older lines of
// the trial itself above them.)
// Source: Ray Tune's PopulationBasedTrainingReplay.
//
// Throws InvalidArgument that names `source` and each line that is no JSON or has another shape.
std::vector<PolicyLine> parse_policy_lines(std::string_view text, const std::string& source);

// The schedule that led to the trial of a policy file. A file without lines is a schedule without a config. Throws as
// parse_policy_lines().
PolicySchedule parse_policy(std::string_view text, const std::string& source);

// The same of a file, at most 64 MiB; a leading ~ is the home directory. Throws InvalidArgument also where it cannot be
// read.
PolicySchedule read_policy_file(const std::filesystem::path& path);

// The config of a change for a trial that has `present`: the schedule's, and those keys of the trial that the schedule
// does not begin with.
Config changed_config(const Config& present, const PolicySchedule& schedule, const PolicySchedule::Change& change);

}  // namespace cadre::tune
