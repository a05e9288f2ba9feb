// Reads pbt_policy_<trial id>.txt, written by loggers/pbt_log.h or by Ray Tune, as a schedule of configs.
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

// Returns the lines of a policy file that belong to the history of its trial, in order: the last line, and upwards each
// line whose target is the donor of the line below it, up to the first that does not match. (Ray Tune keeps older lines
// of the trial itself above them.)
// Source: Ray Tune's PopulationBasedTrainingReplay.
//
// Throws InvalidArgument that names `source` and each line that is not JSON or has another shape.
std::vector<PolicyLine> parse_policy_lines(std::string_view text, const std::string& source);

// Returns the schedule that led to the trial of a policy file. A file without lines gives a schedule without a config.
// Throws like parse_policy_lines().
PolicySchedule parse_policy(std::string_view text, const std::string& source);

// Reads the schedule from a file of at most 64 MiB; a leading ~ is the home directory. Throws InvalidArgument also if
// the file cannot be read.
PolicySchedule read_policy_file(const std::filesystem::path& path);

// Returns the config after a change for a trial that has `present`: the change's values, and the trial's own values of
// keys that the schedule does not begin with.
Config changed_config(const Config& present, const PolicySchedule& schedule, const PolicySchedule::Change& change);

}  // namespace cadre::tune
