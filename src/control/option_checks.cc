#include "control/option_checks.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "base/name.h"
#include "control/objective.h"

namespace cadre::control {

void check_time(const std::string& option, Seconds time, Faults& faults) {
  faults.unless(std::isfinite(time.count()) && time.count() >= 0, option,
                fmt::format("it is {:g} s; it must be 0 or more", time.count()));
}

void check_time_above_0(const std::string& option, Seconds time, Faults& faults) {
  faults.unless(std::isfinite(time.count()) && time.count() > 0, option,
                fmt::format("it is {:g} s; it must be above 0", time.count()));
}

void check_name(const std::string& option, const std::string& name, IfExists if_exists, const std::string& kind,
                Faults& faults) {
  if (name.empty()) {
    faults.unless(if_exists != IfExists::restore, option,
                  fmt::format("there is none, and if_exists is IfExists::restore: the {} to continue is found by its "
                              "name",
                              kind));
  } else if (const std::string fault = base::fault_of_file_name(name); !fault.empty()) {
    faults.add(option, "\"" + name + "\" cannot name a directory: " + fault);
  }
}

void check_publish_config(const std::string& option, const PublishConfig& publish, Faults& faults) {
  check_time_above_0(option + " interval", publish.interval, faults);
  check_time(option + " patience", publish.patience, faults);
}

void check_retention(const CheckpointConfig& checkpoints, const Objective& objective, Faults& faults) {
  const std::int64_t keep = checkpoints.num_to_keep.value_or(1);
  faults.unless(keep >= 1, "checkpoint_config num_to_keep",
                fmt::format("it is {}; keep at least 1 checkpoint, or leave it out to keep all", keep));
  const std::string score_fault = fault_of(checkpoints.checkpoint_score_attribute.value_or(Objective()),
                                           checkpoints.checkpoint_score_order, "checkpoint_score_order", objective);
  faults.unless(score_fault.empty(), "checkpoint_config checkpoint_score_attribute", score_fault);
}

}  // namespace cadre::control
