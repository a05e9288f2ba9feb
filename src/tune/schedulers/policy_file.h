// pbt_policy_<trial id>.txt as a schedule of configs: files that loggers/pbt_log.h writes, and those of Ray Tune.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "cadre/tune/schedulers.h"

namespace cadre::tune {

// The schedule that led to the trial of a policy file. Only lines that belong to its history count: the last one, and
// each line above whose target is the donor of the next one that counts, up to the first that is not. (Ray Tune keeps
// older lines of the trial itself above them.) A file without lines is a schedule without a config.
// Source: Ray Tune's PopulationBasedTrainingReplay.
//
// Throws InvalidArgument that names `source` and each line that is no JSON or has another shape.
PolicySchedule parse_policy(std::string_view text, const std::string& source);

// The same of a file, at most 64 MiB; a leading ~ is the home directory. Throws InvalidArgument also where it cannot be
// read.
PolicySchedule read_policy_file(const std::filesystem::path& path);

// The config of a change for a trial that has `present`: the schedule's, and those keys of the trial that the schedule
// does not begin with.
Config changed_config(const Config& present, const PolicySchedule& schedule, const PolicySchedule::Change& change);

}  // namespace cadre::tune
