#include "tune/console/status.h"

#include <algorithm>
#include <limits>

#include "control/objective.h"
#include "tune/result_keys.h"

namespace cadre::tune::console {
namespace {

std::size_t place_of(TrialStatus status) {
  return static_cast<std::size_t>(std::ranges::find(kStatusOrder, status) - kStatusOrder.begin());
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

// Returns the metric of a trial's latest result, negated for Mode::min; nothing if it is not a finite number.
std::optional<double> score_of(const Trial& trial, const Focus& focus) {
  const std::optional<double> number = control::finite_number(trial.last_result, focus.metric);
  if (!number) return std::nullopt;
  return focus.mode == Mode::max ? *number : -*number;
}

// Distributes `maximum` rows equally over the statuses, up to their counts.
StatusCounts shares(StatusCounts counts, std::size_t maximum) {
  StatusCounts shown = {};
  for (bool any = true; any;) {
    any = false;
    for (std::size_t i = 0; i < counts.size() && maximum > 0; ++i) {
      if (shown[i] == counts[i]) continue;
      ++shown[i];
      --maximum;
      any = true;
    }
  }
  return shown;
}

void include_best(TrialIndex best, std::size_t place,
                  std::array<std::vector<TrialIndex>, kStatusOrder.size()>& picked) {
  if (std::ranges::find(picked[place], best) != picked[place].end()) return;
  if (!picked[place].empty()) {
    picked[place].back() = best;
    return;
  }
  std::ranges::find_if(picked.rbegin(), picked.rend(), [](const auto& some) { return !some.empty(); })->pop_back();
  picked[place].push_back(best);
}

}  // namespace

ExperimentView view_of(const Experiment& experiment) {
  return {experiment.trials(), experiment.trials_to_come(), experiment.resource_usage(), experiment.scheduler_state(),
          experiment.searcher_state()};
}

Focus focus_of(const TuneConfig& config) {
  return {.metric = config.metric.name,
          .mode = config.mode.value_or(Mode::max),
          .mutated = config.scheduler.held().traits().mutated};
}

Overview overview_of(const ExperimentView& view, const Focus& focus) {
  Overview overview;
  double best_score = 0;
  for (const Trial& trial : view.trials) {
    ++overview.counts[place_of(trial.status)];
    if (focus.metric.empty()) continue;
    const std::optional<double> score = score_of(trial, focus);
    if (!score || (overview.best && *score <= best_score)) continue;
    overview.best = trial.index;
    best_score = *score;
  }
  overview.counts[place_of(TrialStatus::pending)] += view.trials_to_come;
  return overview;
}

Selection select_trials(const ExperimentView& view, const Overview& overview, std::size_t maximum) {
  StatusCounts made = overview.counts;
  made[place_of(TrialStatus::pending)] -= view.trials_to_come;
  const StatusCounts wanted = shares(made, maximum);
  std::array<std::vector<TrialIndex>, kStatusOrder.size()> picked;
  std::size_t missing = std::min(maximum, view.trials.size());
  for (const Trial& trial : view.trials) {
    if (missing == 0) break;
    const std::size_t place = place_of(trial.status);
    if (std::ssize(picked[place]) == wanted[place]) continue;
    picked[place].push_back(trial.index);
    --missing;
  }
  if (overview.best) include_best(*overview.best, place_of(view.trials[*overview.best].status), picked);
  Selection selection;
  for (std::size_t i = 0; i < picked.size(); ++i) {
    selection.rows.insert(selection.rows.end(), picked[i].begin(), picked[i].end());
    selection.hidden[i] = overview.counts[i] - std::ssize(picked[i]);
  }
  return selection;
}

Selection rank_trials(const ExperimentView& view, const Overview& overview, const Focus& focus, std::size_t maximum) {
  if (focus.metric.empty()) return select_trials(view, overview, maximum);
  struct Rank {
    double loss;
    std::size_t place;
    TrialIndex trial;
    auto operator<=>(const Rank&) const = default;
  };
  std::vector<Rank> ranks;
  for (const Trial& trial : view.trials) {
    const std::optional<double> score = score_of(trial, focus);
    ranks.push_back(
        {score ? -*score : std::numeric_limits<double>::infinity(), score ? 0 : place_of(trial.status), trial.index});
  }
  const auto shown = ranks.begin() + static_cast<std::ptrdiff_t>(std::min(maximum, ranks.size()));
  std::ranges::partial_sort(ranks, shown);
  Selection selection{.hidden = overview.counts};
  for (auto rank = ranks.begin(); rank != shown; ++rank) {
    selection.rows.push_back(rank->trial);
    --selection.hidden[place_of(view.trials[rank->trial].status)];
  }
  return selection;
}

std::vector<std::string> parameters_of(const ExperimentView& view, const Selection& selection, const Focus& focus) {
  std::vector<std::string> paths;
  for (const TrialIndex index : selection.rows) {
    for (const auto& [path, value] : view.trials[index].sampled) add_once(paths, path);
  }
  for (const std::string& path : focus.mutated) add_once(paths, path);
  return paths;
}

std::vector<std::string> metrics_of(const ExperimentView& view, const Selection& selection, const Focus& focus,
                                    const std::vector<std::string>& parameters) {
  std::vector<std::string> names;
  if (!focus.metric.empty()) names.push_back(focus.metric);
  for (const TrialIndex index : selection.rows) add_number_paths(view.trials[index].last_result, names);
  std::erase_if(names, [&](const std::string& name) {
    return name != focus.metric && std::ranges::find(parameters, name) != parameters.end();
  });
  return names;
}

}  // namespace cadre::tune::console
