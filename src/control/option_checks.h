// Checks of the options that experiments and training runs share. Each adds its faults under the name of the option.
#pragma once

#include <chrono>
#include <string>

#include "cadre/checkpoint_config.h"
#include "cadre/faults.h"

namespace cadre::control {

using Seconds = std::chrono::duration<double>;

// Requires a finite time of 0 or more; or above 0.
void check_time(const std::string& option, Seconds time, Faults& faults);
void check_time_above_0(const std::string& option, Seconds time, Faults& faults);

// Requires a name for a directory, if there is one; and that there is one to restore by. `kind`: "experiment" or "run".
void check_name(const std::string& option, const std::string& name, IfExists if_exists, const std::string& kind,
                Faults& faults);
void check_publish_config(const std::string& option, const PublishConfig& publish, Faults& faults);
// Checks how many checkpoints are kept, and by which score. `objective`: an experiment's.
void check_retention(const CheckpointConfig& checkpoints, const Objective& objective, Faults& faults);

}  // namespace cadre::control
