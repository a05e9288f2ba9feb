// A metric and its direction, which are said once and then used wherever neither is given.
#pragma once

#include <optional>
#include <string>

#include "cadre/checkpoint_config.h"

namespace cadre::run {

// Moves the direction out of `metric` into `mode`. Where `metric` is empty or the experiment's, what is missing is the
// experiment's. A direction stays in `metric` only where it contradicts `mode`.
void complete(Objective& metric, std::optional<Mode>& mode, const Objective& experiments = {});

// Returns the fault of a completed metric whose direction is needed; empty: none. `mode_option` is
// the option beside it.
std::string fault_of(const Objective& metric, const std::optional<Mode>& mode, const std::string& mode_option,
                     const Objective& experiments = {});

// The direction of a completed metric is missing, and what to write instead.
std::string no_direction(const std::string& metric);

// `metric` and `mode`, completed by the experiment's. Throws InvalidArgument where there is no metric or
// no direction.
struct Direction {
  std::string metric;
  Mode mode;
};
Direction direction_of(Objective metric, std::optional<Mode> mode, const Objective& experiments = {});

// Drops the order of a stored config that has no attribute: programs before format 5 of the store wrote one always.
void drop_order_of_nothing(CheckpointConfig& checkpoints);

// "min", "max".
const char* to_string(Mode mode);

}  // namespace cadre::run
