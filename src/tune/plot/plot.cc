#include "cadre/tune/plot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>
#include <span>
#include <unordered_map>

#include "cadre/error.h"
#include "cadre/faults.h"
#include "control/objective.h"
#include "tune/plot/learning_curves.h"
#include "tune/plot/logarithmic_parameter.h"
#include "tune/plot/pareto_plot.h"
#include "tune/result_keys.h"
#include "tune/results/result_rows.h"
#include "view/png.h"

namespace cadre::tune {
namespace {

constexpr std::size_t kDefaultMetrics = 4;
const std::string kConfigPrefix = "config/";

// Returns the metrics that can be drawn: numbers of the last results, except parameters.
std::vector<std::string> names_in(const ResultGrid& grid) {
  std::vector<std::string> names;
  std::set<std::string> known;
  for (const Result& trial : grid) {
    for (std::string& name : number_paths(trial.metrics)) {
      if (known.insert(name).second && trial.config.find(name) == nullptr) names.push_back(std::move(name));
    }
  }
  return names;
}

// Returns the parameters that are numbers, named as in PlotOptions: "config/lr".
std::vector<std::string> parameters_in(const ResultGrid& grid) {
  std::vector<std::string> names;
  std::set<std::string> known;
  for (const Result& trial : grid) {
    for (const auto& [path, value] : trial.sampled) {
      if (value.is_number() && known.insert(path).second) names.push_back(kConfigPrefix + path);
    }
  }
  return names;
}

bool is_parameter(const std::string& name) { return name.starts_with(kConfigPrefix); }

// Returns a metric, or else a parameter of the config that the result was reported with.
std::optional<double> number_of(const std::string& name, const Metrics& result, const Config& config) {
  if (const std::optional<double> metric = result.number(name); metric || !is_parameter(name)) return metric;
  const Value* value = config.find(std::string_view(name).substr(kConfigPrefix.size()));
  return value != nullptr && value->is_number() ? std::optional(value->get<double>()) : std::nullopt;
}

// Returns true if all values are positive, and the highest is at least 50 times the lowest.
bool spans_magnitudes(const std::vector<TrialCurves>& trials, std::size_t metric) {
  constexpr double many = 50;
  double lowest = std::numeric_limits<double>::infinity();
  double highest = 0;
  for (const TrialCurves& trial : trials) {
    for (const CurveSegment& segment : trial.segments) {
      for (const CurvePoint& point : segment.series[metric]) {
        lowest = std::min(lowest, point.y);
        highest = std::max(highest, point.y);
      }
    }
  }
  return lowest > 0 && highest >= many * lowest;
}

std::vector<std::string> metrics_of(const ResultGrid& grid, const PlotOptions& options) {
  if (!options.metrics.empty()) return options.metrics;
  if (!grid.summary().metric.empty()) return {grid.summary().metric};
  std::vector<std::string> names = names_in(grid);
  if (names.size() > kDefaultMetrics) names.resize(kDefaultMetrics);
  if (names.empty()) throw InvalidArgument("no trial of " + grid.summary().name + " has reported a number yet");
  return names;
}

std::string label_of(const Result& trial) {
  std::string label = trial.trial_id;
  for (const auto& [path, value] : trial.sampled) {
    const Value* now = trial.config.find(path);
    const Value& shown = now == nullptr ? value : *now;
    label += fmt::format(" {}={}", path.substr(path.rfind('/') + 1),
                         shown.is_double()   ? fmt::format("{:.3g}", shown.get<double>())
                         : shown.is_string() ? shown.get<std::string>()
                                             : to_json(shown));
  }
  return label;
}

class CurveMaker {
 public:
  CurveMaker(const ResultGrid& grid, const PlotOptions& options, std::vector<std::string> metrics)
      : grid_(grid), x_(options.x), metrics_(std::move(metrics)), seen_(metrics_.size()) {
    for (const Result& trial : grid) {
      for (const std::int64_t result : donor_rows(trial)) points_of_donors_.try_emplace(result);
    }
  }

  std::vector<TrialCurves> make() {
    for (const Result& trial : grid_) curves_.push_back(empty_curves(trial));
    grid_.for_each_result([&](const Result& trial, std::size_t index, const Metrics& result) {
      const Points points = points_of(trial, index, result);
      const auto donor = trial.rows->own.empty() ? points_of_donors_.end()  // it has no store, and no donors
                                                 : points_of_donors_.find(trial.rows->own[index]);
      if (donor != points_of_donors_.end()) donor->second = points;
      const auto segment = std::ranges::upper_bound(trial.exploits, index, {}, &ExploitRecord::first_result);
      TrialCurves& curves = curves_[static_cast<std::size_t>(&trial - &*grid_.begin())];
      append(curves.segments[static_cast<std::size_t>(segment - trial.exploits.begin())], points);
    });
    check_names();
    for (std::size_t i = 0; i < curves_.size(); ++i) begin_at_donors(grid_[i], curves_[i]);
    return std::move(curves_);
  }

 private:
  // One result: a point for each metric, with x NaN if the result lacks it.
  using Points = std::vector<CurvePoint>;

  static std::span<const std::int64_t> donor_rows(const Result& trial) {
    return trial.rows == nullptr ? std::span<const std::int64_t>() : trial.rows->donors;
  }

  TrialCurves empty_curves(const Result& trial) const {
    TrialCurves curves{.id = trial.trial_id, .label = label_of(trial)};
    curves.segments.resize(trial.exploits.size() + 1);
    for (CurveSegment& segment : curves.segments) segment.series.resize(metrics_.size());
    for (std::size_t i = 0; i < trial.exploits.size(); ++i) curves.segments[i + 1].donor = trial.exploits[i].donor;
    return curves;
  }

  Points points_of(const Result& trial, std::size_t index, const Metrics& result) {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    const std::optional<double> x = result.number(x_);
    seen_x_ |= x.has_value();
    Points points(metrics_.size(), {x.value_or(none), none});
    for (std::size_t i = 0; i < metrics_.size(); ++i) {
      if (const std::optional<double> y = number_of(metrics_[i], result, trial.config_at(index))) {
        points[i].y = *y;
        seen_[i] = true;
      } else {
        points[i].x = none;  // the result lacks it
      }
    }
    return points;
  }

  static void append(CurveSegment& segment, const Points& points) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i].x == points[i].x) segment.series[i].push_back(points[i]);
    }
  }

  void begin_at_donors(const Result& trial, TrialCurves& curves) const {
    const std::span<const std::int64_t> donors = donor_rows(trial);
    for (std::size_t i = 0; i < donors.size(); ++i) {
      CurveSegment& segment = curves.segments[i + 1];
      const Points& points = points_of_donors_.at(donors[i]);
      for (std::size_t metric = 0; metric < points.size(); ++metric) {
        if (points[metric].x != points[metric].x) continue;
        CurvePoint begin = points[metric];
        // The explored value applies from the exploit on.
        if (is_parameter(metrics_[metric]))
          begin.y = number_of(metrics_[metric], {}, trial.exploits[i].config).value_or(begin.y);
        segment.x = begin.x;
        segment.series[metric].insert(segment.series[metric].begin(), begin);
      }
    }
  }

  void check_names() const {
    std::vector<std::string> missing;
    if (!seen_x_) missing.push_back(x_);
    for (std::size_t i = 0; i < metrics_.size(); ++i) {
      if (!seen_[i]) missing.push_back(metrics_[i]);
    }
    if (missing.empty()) return;
    std::vector<std::string> names = names_in(grid_);
    std::ranges::copy(parameters_in(grid_), std::back_inserter(names));
    throw InvalidArgument(fmt::format("no result of {} has a number \"{}\"; results have: {}", grid_.summary().name,
                                      fmt::join(missing, "\" or \""), fmt::join(names, ", ")));
  }

  const ResultGrid& grid_;
  std::string x_;
  std::vector<std::string> metrics_;
  std::vector<bool> seen_;
  bool seen_x_ = false;
  std::vector<TrialCurves> curves_ = {};
  std::unordered_map<std::int64_t, Points> points_of_donors_ = {};  // by the result's sequence number
};

// Returns a picture without trials.
LearningCurves frame_of(const ResultGrid& grid, const PlotOptions& options, const std::vector<std::string>& metrics) {
  Faults faults;
  for (const std::string& name : options.logarithmic)
    faults.unless(
        name == options.x || std::ranges::find(metrics, name) != metrics.end(), "logarithmic",
        fmt::format("\"{}\" is not plotted: there are {} over {}", name, fmt::join(metrics, ", "), options.x));
  faults.throw_as("the learning curves of " + grid.summary().name + " cannot be drawn");
  LearningCurves curves{.title = options.title.empty() ? grid.summary().name : options.title, .x_name = options.x};
  curves.logarithmic_x = std::ranges::find(options.logarithmic, options.x) != options.logarithmic.end();
  if (metrics.front() == grid.summary().metric) curves.mode = grid.summary().mode;
  for (const std::string& metric : metrics)
    curves.metrics.push_back({metric, std::ranges::find(options.logarithmic, metric) != options.logarithmic.end()});
  return curves;
}

}  // namespace

std::string to_svg(const ResultGrid& results, const PlotOptions& options) {
  const std::vector<std::string> metrics = metrics_of(results, options);
  LearningCurves curves = frame_of(results, options, metrics);
  curves.trials = CurveMaker(results, options, metrics).make();
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    if (!is_parameter(metrics[i])) continue;
    const std::string path = metrics[i].substr(kConfigPrefix.size());
    const Value* space = results.summary().options.find("param_space");
    const bool is_log =
        (space != nullptr && is_drawn_logarithmically(*space, path)) || spans_magnitudes(curves.trials, i);
    curves.metrics[i].logarithmic |= is_log;
  }
  if (is_parameter(metrics.front()) && !results.summary().metric.empty()) {  // the experiment's metric ranks the trials
    const std::vector<std::optional<double>> scores = results.scores(results.summary().metric, Scope::last);
    for (std::size_t i = 0; i < scores.size(); ++i) curves.trials[i].score = scores[i];
    curves.mode = results.summary().mode;
  }
  return to_svg(curves);
}

std::string to_svg(const std::vector<ComparedTrial>& trials, const PlotOptions& options) {
  if (trials.empty()) throw InvalidArgument("a picture of compared trials needs at least one");
  const std::vector<std::string> metrics = metrics_of(trials.front().results, options);
  LearningCurves curves = frame_of(trials.front().results, options, metrics);
  for (const auto& [label, results, trial_id] : trials) {
    const auto trial = std::ranges::find(results, trial_id, &Result::trial_id);
    if (trial == results.end())
      throw InvalidArgument(fmt::format("{} has no trial {}", results.summary().name, trial_id));
    std::vector<TrialCurves> all = CurveMaker(results, options, metrics).make();
    TrialCurves& chosen = all[static_cast<std::size_t>(trial - results.begin())];
    chosen.label = label;
    curves.trials.push_back(std::move(chosen));
  }
  return to_svg(curves);
}

void write_plot(const std::vector<ComparedTrial>& trials, const std::filesystem::path& file,
                const PlotOptions& options) {
  view::write_picture(to_svg(trials, options), file);
}

void write_plot(const ResultGrid& results, const std::filesystem::path& file, const PlotOptions& options) {
  view::write_picture(to_svg(results, options), file);
}

// ---- Pareto fronts

std::string pareto_svg(const ResultGrid& results, const std::vector<Objective>& metrics,
                       const ParetoPlotOptions& options) {
  const ExperimentSummary& summary = results.summary();
  const std::vector<std::size_t> front = results.pareto_front(metrics, options.scope);
  const std::vector<control::Direction> directions = control::directions_of(metrics, {summary.metric, summary.mode});
  Faults faults;
  faults.unless(directions.size() == 2, "metrics",
                fmt::format("a picture of a Pareto front has two axes, so it needs 2 metrics, not {}", metrics.size()));
  for (const std::string& name : options.logarithmic)
    faults.unless(std::ranges::find(directions, name, &control::Direction::metric) != directions.end(), "logarithmic",
                  fmt::format("\"{}\" is not one of the metrics", name));
  faults.throw_if_any("the comparison by two metrics");

  const auto axis_of = [&](const control::Direction& direction) {
    const bool is_log = std::ranges::find(options.logarithmic, direction.metric) != options.logarithmic.end();
    return ParetoAxis{direction.metric, direction.mode, is_log};
  };
  ParetoPlot plot{.title = options.title.empty() ? summary.name : options.title,
                  .x = axis_of(directions[0]),
                  .y = axis_of(directions[1])};
  const std::vector<std::optional<double>> x = results.scores(plot.x.name, options.scope);
  const std::vector<std::optional<double>> y = results.scores(plot.y.name, options.scope);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!x[i] || !y[i]) continue;
    plot.trials.push_back(
        {fmt::format("{}: {}={:.6g}, {}={:.6g}", label_of(results[i]), plot.x.name, *x[i], plot.y.name, *y[i]), *x[i],
         *y[i], std::ranges::find(front, i) != front.end()});
  }
  return to_svg(plot);
}

void write_pareto_plot(const ResultGrid& results, const std::vector<Objective>& metrics,
                       const std::filesystem::path& file, const ParetoPlotOptions& options) {
  view::write_picture(pareto_svg(results, metrics, options), file);
}

}  // namespace cadre::tune
