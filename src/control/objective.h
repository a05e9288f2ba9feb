// A metric and its direction: the experiment's where neither is given; and the best of its values.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cadre/checkpoint_config.h"
#include "cadre/value.h"

namespace cadre::control {

// Completes a metric and its direction. Moves the direction out of `metric` into `mode`. If `metric` is empty or the
// experiment's, fills in what is missing from the experiment's. A direction stays in `metric` only if it contradicts
// `mode`.
void complete(Objective& metric, std::optional<Mode>& mode, const Objective& experiments = {});

// Returns the fault of a completed metric whose direction is needed; empty: none. `mode_option` is the name of the
// option that sets `mode`.
std::string fault_of(const Objective& metric, const std::optional<Mode>& mode, const std::string& mode_option,
                     const Objective& experiments = {});

// Returns the message that the direction of a completed metric is missing, with what to write instead.
std::string no_direction(const std::string& metric);

// `metric` and `mode`, completed from the experiment's. direction_of() throws InvalidArgument if there is no metric or
// no direction.
struct Direction {
  std::string metric;
  Mode mode;
};
Direction direction_of(Objective metric, std::optional<Mode> mode, const Objective& experiments = {});
// Does the same for several metrics. Throws InvalidArgument with all faults if there is none, one occurs twice or one
// has no direction.
std::vector<Direction> directions_of(const std::vector<Objective>& metrics, const Objective& experiments = {});

// Returns the metric's value in a result if it is a finite number.
std::optional<double> finite_number(const Metrics& result, const std::string& metric);
// Returns the index of the best value, of equal ones the first; empty: there is none.
std::optional<std::size_t> index_of_best(std::span<const std::optional<double>> values, Mode mode);

// Returns "min" or "max".
const char* to_string(Mode mode);

}  // namespace cadre::control
