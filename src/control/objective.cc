#include "control/objective.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "cadre/error.h"
#include "cadre/faults.h"
#include "cadre/stored.h"

namespace cadre {

namespace {

struct NamedDirection {
  std::string name = {};
  Mode mode = Mode::min;
};

}  // namespace

// Only the name where a member beside the metric holds its direction.
Value stored_form(const Objective& metric) {
  if (!metric.mode) return metric.name;
  return to_stored(NamedDirection{metric.name, *metric.mode});
}

void read_stored(Objective& metric, const Stored& stored) {
  if (stored.value().is_string()) {
    metric = stored.get<std::string>();
  } else {
    const auto named = from_stored<NamedDirection>(stored);
    metric = {named.name, named.mode};
  }
}

}  // namespace cadre

namespace cadre::control {

void complete(Objective& metric, std::optional<Mode>& mode, const Objective& experiments) {
  if (!mode) mode = metric.mode;
  if (metric.mode == mode) metric.mode.reset();
  if (metric.name.empty()) metric.name = experiments.name;
  if (!mode && metric.name == experiments.name) mode = experiments.mode;
}

std::string fault_of(const Objective& metric, const std::optional<Mode>& mode, const std::string& mode_option,
                     const Objective& experiments) {
  if (metric.name.empty()) return mode ? fmt::format("{} is said, and there is no metric", mode_option) : "";
  if (!mode) return no_direction(metric.name);
  if (metric.mode)
    return fmt::format("\"{}\" is said to be {} with the metric, and {} by {}: leave one of them out", metric.name,
                       to_string(*metric.mode), to_string(*mode), mode_option);
  if (metric.name == experiments.name && experiments.mode && mode != experiments.mode)
    return fmt::format("it has the direction {} for \"{}\", and the TuneConfig has {}: leave it out here",
                       to_string(*mode), metric.name, to_string(*experiments.mode));
  return {};
}

std::string no_direction(const std::string& metric) {
  return fmt::format(
      "it is not said which values of \"{0}\" are good: write minimize(\"{0}\"), as of a loss, or "
      "maximize(\"{0}\"), as of an accuracy",
      metric);
}

Direction direction_of(Objective metric, std::optional<Mode> mode, const Objective& experiments) {
  complete(metric, mode, experiments);
  if (metric.name.empty()) throw InvalidArgument("no metric is known: give one, or set it in the TuneConfig");
  if (const std::string fault = fault_of(metric, mode, "mode"); !fault.empty()) throw InvalidArgument(fault);
  return {metric.name, *mode};
}

std::vector<Direction> directions_of(const std::vector<Objective>& metrics, const Objective& experiments) {
  Faults faults;
  faults.unless(!metrics.empty(), "metrics",
                "there is none: give several, as {minimize(\"loss\"), minimize(\"size\")}");
  std::set<std::string> known;
  std::vector<Direction> directions;
  for (Objective metric : metrics) {
    std::optional<Mode> mode;
    complete(metric, mode, experiments);
    faults.unless(!metric.name.empty(), "metrics", "one has no name");
    if (metric.name.empty()) continue;
    faults.unless(known.insert(metric.name).second, metric.name, "it is there twice");
    faults.unless(mode.has_value(), metric.name, no_direction(metric.name));
    directions.push_back({metric.name, mode.value_or(Mode::min)});
  }
  faults.throw_if_any("the comparison by several metrics");
  return directions;
}

std::optional<double> finite_number(const Metrics& result, const std::string& metric) {
  const std::optional<double> number = result.number(metric);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::optional<std::size_t> index_of_best(std::span<const std::optional<double>> values, Mode mode) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) continue;
    if (!best || (mode == Mode::max ? *values[i] > *values[*best] : *values[i] < *values[*best])) best = i;
  }
  return best;
}

const char* to_string(Mode mode) { return mode == Mode::max ? "max" : "min"; }

}  // namespace cadre::control
