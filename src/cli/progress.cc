#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tune/console/status_block.h"
#include "tune/description.h"
#include "tune/result_keys.h"
#include "tune/searchers/variant_generator.h"

namespace cadre::cli {
namespace {

using tune::TrialStatus;

bool has_ended(const tune::Result& trial) {
  return trial.status == TrialStatus::terminated || trial.status == TrialStatus::stopped ||
         trial.status == TrialStatus::error;
}

// The stop criteria that end each trial at a known point.
struct Limits {
  double iterations = 0;  // 0: none
  double own_results = 0;
  double seconds = 0;
  bool others = false;  // there are criteria that end trials at unknown points
};

void lower(double& limit, double value) { limit = limit > 0 ? std::min(limit, value) : value; }

Limits limits_of(const tune::Stop& stop) {
  Limits limits;
  for (const auto& [metric, threshold] : stop.thresholds) {
    if (metric == tune::TRAINING_ITERATION) {
      lower(limits.iterations, threshold.value);
    } else if (metric == tune::TIME_TOTAL_S) {
      lower(limits.seconds, threshold.value);
    } else {
      limits.others = true;
    }
  }
  for (const tune::AnyStopper& stopper : stop.stoppers) {
    if (const auto* most = stopper.get_if<tune::MaximumIterationStopper>()) {
      lower(limits.own_results, static_cast<double>(most->max_iter));
    } else if (!stopper.held().traits().timeout) {
      limits.others = true;
    }
  }
  return limits;
}

double done_of(const tune::Result& trial, const Limits& limits) {
  if (has_ended(trial)) return 1;
  double done = 0;
  const auto consider = [&](double value, double limit) {
    if (limit > 0) done = std::max(done, value / limit);
  };
  consider(trial.metrics.number(tune::TRAINING_ITERATION).value_or(0), limits.iterations);
  consider(trial.metrics.number(tune::TIME_TOTAL_S).value_or(0), limits.seconds);
  consider(static_cast<double>(trial.num_results()), limits.own_results);
  return std::clamp(done, 0.0, 1.0);
}

// Returns the running time after which the whole experiment ends; empty: no limit.
std::optional<double> time_budget(const tune::TunerOptions& options) {
  std::optional<double> budget;
  const auto consider = [&](double seconds) { budget = std::min(budget.value_or(seconds), seconds); };
  if (options.tune_config.time_budget) consider(options.tune_config.time_budget->count());
  for (const tune::AnyStopper& stopper : options.run_config.stop.stoppers) {
    if (const auto timeout = stopper.held().traits().timeout) consider(timeout->count());
  }
  return budget;
}

}  // namespace

Progress progress_of(const tune::ResultGrid& grid) {
  const tune::ExperimentSummary& summary = grid.summary();
  const tune::TunerOptions options =
      tune::parse_description(Value(summary.options.dict()), "the options of " + summary.name).options;
  Progress progress{.trials = std::max<std::int64_t>(
                        tune::VariantGenerator(options.param_space, options.tune_config).size(), std::ssize(grid)),
                    .ended = std::ranges::count_if(grid, has_ended)};
  const Limits limits = limits_of(options.run_config.stop);
  progress.may_end_earlier = limits.others;
  if (limits.iterations > 0 || limits.own_results > 0 || limits.seconds > 0) {
    double done = 0;
    for (const tune::Result& trial : grid) done += done_of(trial, limits);
    progress.done = progress.trials == 0 ? 0 : done / static_cast<double>(progress.trials);
  }
  if (summary.state != tune::ExperimentState::running) return progress;
  if (progress.done && *progress.done > 0)
    progress.seconds_left = summary.running_seconds * (1 - *progress.done) / *progress.done;
  if (const std::optional<double> budget = time_budget(options)) {
    const double left = std::max(*budget - summary.running_seconds, 0.0);
    progress.may_end_earlier |= !progress.seconds_left;
    progress.seconds_left = std::min(progress.seconds_left.value_or(left), left);
  }
  return progress;
}

std::string state_name(const tune::ExperimentSummary& summary) {
  return summary.is_paused ? "paused" : to_string(summary.state);
}

std::string progress_text(const Progress& progress, tune::ExperimentState state) {
  if (state == tune::ExperimentState::finished) return {};
  std::string text = fmt::format("{} of {} {} {} ended", progress.ended, progress.trials,
                                 progress.trials == 1 ? "trial" : "trials", progress.ended == 1 ? "has" : "have");
  if (progress.done) text = fmt::format("{:.0f} %, {}", 100 * *progress.done, text);
  if (progress.seconds_left)
    text += fmt::format("; {}about {} left", progress.may_end_earlier ? "at most " : "",
                        tune::console::duration_text(std::max(*progress.seconds_left, 1.0)));
  return text;
}

}  // namespace cadre::cli
