#include "cadre/tune/importance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <set>
#include <utility>
#include <variant>

#include "base/overload.h"
#include "cadre/error.h"
#include "cadre/faults.h"
#include "cadre/stored.h"
#include "cadre/tune/parameters.h"
#include "control/objective.h"
#include "tune/results/ped_anova.h"

namespace cadre::tune {
namespace {

using base::Overload;
using ListPointer = std::shared_ptr<const Entries>;
using SpacePointer = std::shared_ptr<const Space>;

constexpr std::size_t kFewestTrials = 10;

// ---- The space

bool has_function(const SpaceEntry& entry) {
  const auto any_has = [](const Entries& entries) { return std::ranges::any_of(entries, has_function); };
  return std::visit(Overload{[](const SampleFrom&) { return true; }, [](const Value&) { return false; },
                             [&](const GridSearch& grid) { return any_has(*grid.options); },
                             [&](const Domain& domain) {
                               const auto* choice = std::get_if<Choice>(&domain);
                               return choice != nullptr && any_has(*choice->options);
                             },
                             [&](const ListPointer& items) { return any_has(*items); },
                             [](const SpacePointer& space) {
                               return std::ranges::any_of(*space,
                                                          [](const auto& item) { return has_function(item.second); });
                             }},
                    entry.data());
}

// Returns the entry with choices instead of grids, which Parameters does not have.
SpaceEntry without_grids(const SpaceEntry& entry) {
  const auto all = [](const Entries& entries) {
    Entries changed;
    std::ranges::transform(entries, std::back_inserter(changed), without_grids);
    return changed;
  };
  return std::visit(Overload{[&](const GridSearch& grid) { return SpaceEntry(choice(all(*grid.options))); },
                             [&](const Domain& domain) {
                               const auto* options = std::get_if<Choice>(&domain);
                               return options == nullptr ? entry : SpaceEntry(choice(all(*options->options)));
                             },
                             [&](const ListPointer& items) { return SpaceEntry(all(*items)); },
                             [](const SpacePointer& space) {
                               Space changed;
                               for (const auto& [key, item] : *space) changed.emplace_back(key, without_grids(item));
                               return SpaceEntry(changed);
                             },
                             [&](const auto&) { return entry; }},
                    entry.data());
}

// Returns the entries that Parameters accepts: those without functions.
Space comparable(const Space& space) {
  Space kept;
  for (const auto& [key, entry] : space) {
    if (const auto* nested = std::get_if<SpacePointer>(&entry.data())) {
      kept.emplace_back(key, SpaceEntry(comparable(**nested)));
    } else if (!has_function(entry)) {
      kept.emplace_back(key, without_grids(entry));
    }
  }
  return kept;
}

Parameters parameters_of(const ResultGrid& results) {
  const Value* stored = results.summary().options.find("param_space");
  if (stored == nullptr)
    throw InvalidArgument("the search space of " + results.summary().name +
                          " is not known: read the results of an experiment with ResultGrid::from_directory");
  Parameters parameters(comparable(from_value<Space>(*stored)));
  if (parameters.size() == 0)
    throw InvalidArgument("the search space of " + results.summary().name +
                          " has no hyper-parameter to compare: it draws nothing but values of functions");
  return parameters;
}

// ---- The trials

struct CountedTrials {
  std::vector<Point> points = {};
  std::vector<double> losses = {};
  std::size_t exploited = 0;  // left out

  std::string left_out_text() const {
    return exploited == 0 ? "" : fmt::format("; {} whose configs exploits have changed do not count", exploited);
  }
};

CountedTrials counted_trials(const ResultGrid& results, const Parameters& parameters,
                             const std::vector<std::optional<double>>& scores, Mode mode) {
  CountedTrials counted;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!scores[i]) continue;
    if (!results[i].exploits.empty()) {
      ++counted.exploited;
      continue;
    }
    const std::optional<Point> point = parameters.point_of(results[i].drawn_config);
    if (!point) continue;
    counted.points.push_back(*point);
    counted.losses.push_back(mode == Mode::min ? *scores[i] : -*scores[i]);
  }
  return counted;
}

void require_enough(const CountedTrials& counted, const std::string& experiment, const std::string& metric) {
  if (counted.points.size() >= kFewestTrials) return;
  throw InvalidArgument(
      fmt::format("the importance of hyper-parameters needs at least {} trials with a finite number \"{}\", and {} has "
                  "{}{}: run more trials (TuneConfig::num_samples)",
                  kFewestTrials, metric, experiment, counted.points.size(), counted.left_out_text()));
}

// ---- The keys. Several parameters share one if it is drawn from several domains.

std::vector<std::string> keys_of(const Parameters& parameters) {
  std::vector<std::string> keys;
  for (const Parameter& parameter : parameters.all()) {
    if (std::ranges::find(keys, parameter.path) == keys.end()) keys.push_back(parameter.path);
  }
  return keys;
}

void check(const ImportanceOptions& options, const std::vector<std::string>& keys) {
  Faults faults;
  faults.unless(options.quantile > 0 && options.quantile < 1, "quantile",
                fmt::format("it is {}; it must be above 0 and below 1", options.quantile));
  std::set<std::string> known;
  for (const std::string& key : options.keys) {
    faults.unless(
        std::ranges::find(keys, key) != keys.end(), "keys",
        fmt::format("\"{}\" is no hyper-parameter of the search space, which has: {}", key, fmt::join(keys, ", ")));
    faults.unless(known.insert(key).second, "keys", fmt::format("\"{}\" is there twice", key));
  }
  faults.throw_if_any("the comparison of hyper-parameters");
}

Importance importance_of(const std::string& key, const Parameters& parameters, const std::vector<Point>& points,
                         const std::vector<double>& importances) {
  Importance importance{.key = key};
  std::vector<bool> has(points.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].path != key) continue;
    // The divergence of a value is that of its choice plus, by shares of the options, those of the values within.
    importance.importance += importances[i];
    for (std::size_t trial = 0; trial < points.size(); ++trial)
      has[trial] = has[trial] || !std::isnan(points[trial][i]);
  }
  importance.num_trials = static_cast<std::size_t>(std::ranges::count(has, true));
  return importance;
}

}  // namespace

std::vector<Importance> importances(const ResultGrid& results, const ImportanceOptions& options) {
  const ExperimentSummary& summary = results.summary();
  const auto [metric, mode] = control::direction_of(options.metric, options.mode, {summary.metric, summary.mode});
  const Parameters parameters = parameters_of(results);
  const std::vector<std::string> known = keys_of(parameters);
  check(options, known);
  const std::vector<std::optional<double>> scores = results.scores(metric, options.scope);
  if (std::ranges::none_of(scores, &std::optional<double>::has_value))
    results.get_best_result(metric, mode, options.scope);  // throws what is missing
  const CountedTrials counted = counted_trials(results, parameters, scores, mode);
  require_enough(counted, summary.name, metric);

  const std::vector<bool> is_good = best_quantile(counted.losses, options.quantile);
  if (std::ranges::count(is_good, false) == 0)
    throw InvalidArgument(
        fmt::format("nothing distinguishes the best trials of {}: \"{}\" is as good in all {} that count, or the "
                    "quantile {} is too large",
                    summary.name, metric, counted.losses.size(), options.quantile));
  const std::vector<double> divergences = ped_anova(parameters, counted.points, is_good);
  std::vector<Importance> found;
  double sum = 0;
  for (const std::string& key : options.keys.empty() ? known : options.keys) {
    found.push_back(importance_of(key, parameters, counted.points, divergences));
    sum += found.back().importance;
  }
  if (!(sum > 0))
    throw InvalidArgument(fmt::format(
        "no hyper-parameter differs between the trials of {} that count{}: {}", summary.name, counted.left_out_text(),
        options.keys.empty() ? "search a space with domains or grids" : "ask for others"));
  for (Importance& one : found) one.importance /= sum;
  std::ranges::stable_sort(found, std::ranges::greater(), &Importance::importance);
  return found;
}

}  // namespace cadre::tune
