#include "report/document.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <span>

#include "base/native_stack.h"
#include "cadre/error.h"
#include "cadre/tune/importance.h"
#include "control/objective.h"
#include "report/cell.h"
#include "report/curves.h"
#include "tune/plot/logarithmic_parameter.h"

namespace cadre::report {
namespace fs = std::filesystem;
namespace {

using tune::Result;
using tune::ResultGrid;
using tune::TrialStatus;

constexpr std::array kStatuses = {TrialStatus::pending,    TrialStatus::running, TrialStatus::paused,
                                  TrialStatus::terminated, TrialStatus::stopped, TrialStatus::error};

Value text_or_null(const std::string& text) { return text.empty() ? Value() : Value(text); }

template <class Item>
std::span<const Item> first_of(const std::vector<Item>& items, std::size_t most) {
  return std::span(items).first(std::min(items.size(), most));
}

class DocumentMaker {
 public:
  DocumentMaker(const Source& source, CurveReader& curves)
      : source_(source), grid_(source.results), origins_(origins_of(grid_)) {
    const tune::ExperimentSummary& summary = grid_.summary();
    if (!summary.metric.empty()) scores_ = grid_.scores(summary.metric, tune::Scope::last);
    scores_.resize(grid_.size());
    find_best();
    choose_trials();
    curves_ = curves.read(grid_, origins_, is_chosen_);
  }

  Value make() {
    Dict document = summary();
    document.emplace_back("trials", trials());
    document.emplace_back("columns", columns());
    document.emplace_back("curves", curves());
    document.emplace_back("exploits", exploits());
    document.emplace_back("failures", failures());
    document.emplace_back("checkpoints", source_.run ? run_checkpoints() : checkpoints());
    document.emplace_back("importance", importance());
    if (source_.run) document.emplace_back("run", run());
    return document;
  }

 private:
  double loss_of(std::size_t i) const { return grid_.summary().mode == Mode::max ? -*scores_[i] : *scores_[i]; }

  void find_best() {
    if (!grid_.summary().mode) return;
    for (std::size_t i = 0; i < grid_.size(); ++i) {
      if (scores_[i] && (!best_ || loss_of(i) < loss_of(*best_))) best_ = i;
    }
  }

  // Returns a trial and all that its results are made of.
  std::set<std::size_t> ancestors_of(std::size_t trial) const {
    std::set<std::size_t> known{trial};
    std::vector<std::size_t> open{trial};
    while (!open.empty()) {
      const std::size_t at = open.back();
      open.pop_back();
      for (const CurveOrigin& origin : origins_[at]) {
        if (known.insert(origin.trial).second) open.push_back(origin.trial);
      }
    }
    return known;
  }

  void choose_trials() {
    std::vector<std::optional<double>> losses(grid_.size());
    for (std::size_t i = 0; i < grid_.size(); ++i) {
      if (scores_[i]) losses[i] = loss_of(i);
    }
    const std::set<std::size_t> ancestors = best_ ? ancestors_of(*best_) : std::set<std::size_t>();
    chosen_ = sampled_trials(losses, {ancestors.begin(), ancestors.end()}, kMostTrials);
    is_chosen_.assign(grid_.size(), false);
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      is_chosen_[chosen_[i]] = true;
      place_.emplace(chosen_[i], i);
    }
  }

  // Returns the index of a trial in the document; null if it is not there.
  Value place_of(std::size_t trial) const {
    const auto found = place_.find(trial);
    return found == place_.end() ? Value() : Value(found->second);
  }

  Dict summary() const {
    const tune::ExperimentSummary& summary = grid_.summary();
    List options;
    for (const auto& [label, text] : source_.options) options.push_back(List{label, text});
    Dict counts;
    for (const TrialStatus status : kStatuses)
      counts.emplace_back(to_string(status), std::ranges::count(grid_, status, &Result::status));
    return {{"version", kDocumentVersion},
            {"kind", source_.run ? "training_run" : "experiment"},
            {"name", summary.name},
            {"path", source_.place(grid_.experiment_path())},
            {"trainable", summary.trainable},
            {"state", to_string(summary.state)},
            {"paused", summary.is_paused},
            {"controller", text_or_null(summary.controller)},
            {"stop_reason", text_or_null(summary.stop_reason)},
            {"progress", text_or_null(source_.progress)},
            {"metric", text_or_null(summary.metric)},
            {"mode", summary.mode ? Value(control::to_string(*summary.mode)) : Value()},
            {"started", summary.started},
            {"last_event", summary.last_event},
            {"running_seconds", summary.running_seconds},
            {"sessions", summary.sessions},
            {"read", source_.read},
            {"options", std::move(options)},
            {"trials_in_all", grid_.size()},
            {"trials_by_status", std::move(counts)},
            {"best", best_ ? place_of(*best_) : Value()}};
  }

  template <class Get>
  List each(const Get& get) const {
    List items;
    items.reserve(chosen_.size());
    for (const std::size_t i : chosen_) items.push_back(get(grid_[i]));
    return items;
  }

  Dict trials() const {
    return {{"id", each([](const Result& trial) { return Value(trial.trial_id); })},
            {"status", each([](const Result& trial) { return Value(to_string(trial.status)); })},
            {"folder", each([](const Result& trial) { return Value(trial.path.filename().string()); })},
            {"results", each([](const Result& trial) { return Value(trial.num_results()); })},
            {"attempts", each([](const Result& trial) { return Value(trial.attempts); })},
            {"failures", each([](const Result& trial) { return Value(trial.failures); })}};
  }

  List columns() const {
    List columns;
    const Value* space = grid_.summary().options.find("param_space");
    for (const std::string& path : source_.parameters) {
      const bool is_explored = std::ranges::any_of(grid_, [&](const Result& trial) {
        return std::ranges::any_of(trial.exploits, [&](const tune::ExploitRecord& exploit) {
          return std::ranges::find(exploit.changes, path, &tune::ExploitRecord::Change::key) != exploit.changes.end();
        });
      });
      columns.push_back(Dict{{"name", path},
                             {"kind", "parameter"},
                             {"logarithmic", space != nullptr && tune::is_drawn_logarithmically(*space, path)},
                             {"explored", is_explored},
                             {"cells", each([&](const Result& trial) { return cell_of(trial.config.find(path)); })},
                             {"drawn", is_explored ? Value(each([&](const Result& trial) {
                                return cell_of(trial.drawn_config.find(path));
                              }))
                                                   : Value()}});
    }
    for (const std::string& path : curves_.names) {
      columns.push_back(Dict{{"name", path}, {"kind", "metric"}, {"cells", each([&](const Result& trial) {
                                                                    const Value* value = trial.metrics.find(path);
                                                                    return value != nullptr && value->is_number()
                                                                               ? cell_of(value)
                                                                               : Value();
                                                                  })}});
    }
    return columns;
  }

  Dict curves() const {
    List names(curves_.names.begin(), curves_.names.end());
    List trials;
    for (const std::size_t i : chosen_) trials.push_back(curves_.trials[i]);
    return {{"names", std::move(names)},
            {"names_in_all", curves_.columns_in_all},
            {"reduced", curves_.reduced},
            {"trials", std::move(trials)}};
  }

  List exploits() const {
    List exploits;
    for (const std::size_t i : chosen_) {
      for (std::size_t k = 0; k < grid_[i].exploits.size(); ++k) exploits.push_back(exploit(i, k));
    }
    return exploits;
  }

  Dict exploit(std::size_t trial, std::size_t index) const {
    const tune::ExploitRecord& record = grid_[trial].exploits[index];
    const CurveOrigin& origin = origins_[trial][index];
    const std::map<std::size_t, std::size_t>& kept = curves_.kept_origins[origin.trial];
    const auto row = kept.find(origin.result);
    List changes;
    for (const auto& [key, before, operation, after] : record.changes)
      changes.push_back(List{key, cell_of(&before), operation, cell_of(&after)});
    List config;
    for (const std::string& path : source_.parameters) config.push_back(cell_of(record.config.find(path)));
    return {{"trial", place_of(trial)},
            {"iteration", record.training_iteration},
            {"donor", record.donor},
            {"donor_iteration", record.donor_iteration},
            {"origin", List{place_of(origin.trial), origin.segment, row == kept.end() ? Value() : Value(row->second)}},
            {"changes", std::move(changes)},
            {"parameters", std::move(config)}};
  }

  Dict failures() const {
    List failures;
    std::int64_t count = 0;
    for (const Result& trial : grid_) {
      if (!source_.run && trial.failures == 0 && !trial.error) continue;
      const std::string lines = static_cast<std::size_t>(count) < kMostFailures ? source_.last_errors(trial) : "";
      if (source_.run && lines.empty() && !trial.error) continue;
      if (static_cast<std::size_t>(count++) >= kMostFailures) continue;
      failures.push_back(Dict{{"id", trial.trial_id},
                              {"status", to_string(trial.status)},
                              {"failures", trial.failures},
                              {"error", trial.error ? Value(base::without_native_stacks(*trial.error)) : Value()},
                              {"last_lines", text_or_null(lines)}});
    }
    return {{"in_all", count}, {"items", std::move(failures)}};
  }

  struct KeptCheckpoint {
    std::size_t trial = 0;
    const fs::path* path = nullptr;
    const Metrics* metrics = nullptr;  // null: they are not known
  };

  // Returns those of all trials in the document, in the order of trials.
  std::vector<KeptCheckpoint> kept_checkpoints() const {
    std::vector<KeptCheckpoint> kept;
    for (const std::size_t i : chosen_) {
      const Result& trial = grid_[i];
      bool has_latest = !trial.checkpoint;
      for (const auto& [checkpoint, metrics] : trial.best_checkpoints) {
        kept.push_back({i, &checkpoint.path(), &metrics});
        has_latest = has_latest || checkpoint.path() == trial.checkpoint->path();
      }
      if (!has_latest) kept.push_back({i, &trial.checkpoint->path(), nullptr});
    }
    return kept;
  }

  // Drops what is too much: of the worst trials, or of the last ones if it is not known which are bad.
  void drop_worst(std::vector<KeptCheckpoint>& kept) const {
    if (kept.size() <= kMostCheckpoints) return;
    const bool is_ranked = grid_.summary().mode.has_value();
    std::ranges::stable_sort(kept, {}, [&](const KeptCheckpoint& one) {
      return is_ranked && scores_[one.trial] ? loss_of(one.trial) : std::numeric_limits<double>::infinity();
    });
    kept.resize(kMostCheckpoints);
    std::ranges::stable_sort(kept, {}, &KeptCheckpoint::trial);
  }

  Dict checkpoints() const {
    const std::string& metric = grid_.summary().metric;
    List trials, paths, iterations, values;
    std::vector<KeptCheckpoint> kept = kept_checkpoints();
    const std::size_t count = kept.size();
    drop_worst(kept);
    for (const auto& [trial, path, metrics] : kept) {
      trials.push_back(place_of(trial));
      paths.push_back(source_.place(*path));
      iterations.push_back(cell_of(metrics == nullptr ? nullptr : metrics->find(tune::TRAINING_ITERATION)));
      values.push_back(cell_of(metrics == nullptr || metric.empty() ? nullptr : metrics->find(metric)));
    }
    return {{"in_all", count},
            {"trial", std::move(trials)},
            {"path", std::move(paths)},
            {"iteration", std::move(iterations)},
            {"value", std::move(values)}};
  }

  Dict run_checkpoints() const {
    const std::string& metric = grid_.summary().metric;
    List trials, paths, iterations, values, statuses, errors, metrics;
    const std::vector<train::ReportedCheckpoint>& all = source_.run->checkpoints;
    // The best ones are the last.
    for (const train::ReportedCheckpoint& one : std::span(all).last(std::min(all.size(), kMostCheckpoints))) {
      trials.emplace_back(0);
      paths.push_back(source_.place(one.checkpoint.path()));
      iterations.push_back(cell_of(one.metrics.find(tune::TRAINING_ITERATION)));
      values.push_back(cell_of(metric.empty() ? nullptr : one.metrics.find(metric)));
      statuses.push_back(train::to_string(one.status));
      errors.push_back(text_or_null(one.validation_error));
      Dict found;
      for (const auto& [key, value] : one.validation_metrics.dict()) found.emplace_back(key, cell_of(&value));
      metrics.emplace_back(std::move(found));
    }
    return {{"in_all", all.size()},
            {"trial", std::move(trials)},
            {"path", std::move(paths)},
            {"iteration", std::move(iterations)},
            {"value", std::move(values)},
            {"status", std::move(statuses)},
            {"validation_error", std::move(errors)},
            {"validation", std::move(metrics)}};
  }

  Dict importance() const {
    if (source_.run) return {{"reason", "a training run has no trials to compare"}};
    if (grid_.summary().metric.empty()) return {{"reason", "the experiment has no metric of its own"}};
    try {
      List items;
      for (const auto& [key, importance, num_trials] : tune::importances(grid_))
        items.push_back(List{key, importance, num_trials});
      return {{"items", std::move(items)},
              {"left_out", std::ranges::count_if(grid_, [](const Result& trial) { return !trial.exploits.empty(); })}};
    } catch (const InvalidArgument& error) {
      return {{"reason", error.what()}};
    } catch (const NotFound& error) {
      return {{"reason", error.what()}};
    }
  }

  Dict run() const {
    const RunParts& run = *source_.run;
    List lanes;
    for (const train::TimelineLane& lane : run.timeline.lanes) {
      List spans;
      for (const auto& [kind, begin, end, label] : first_of(lane.spans, kMostSpans))
        spans.push_back(List{name_of(kind), point_of(begin), point_of(end), label});
      lanes.push_back(Dict{{"name", lane.name}, {"spans", std::move(spans)}});
    }
    List reports;
    for (const double report : first_of(run.timeline.reports, kMostSpans)) reports.push_back(point_of(report));
    List config;
    for (const auto& [key, value] : grid_[0].config.dict()) config.push_back(List{key, cell_of(&value)});
    return {{"status", run.status},          {"attempts", run.attempts},
            {"config", std::move(config)},   {"duration", run.timeline.duration},
            {"reports", std::move(reports)}, {"lanes", std::move(lanes)}};
  }

  static const char* name_of(train::TimelineSpan::Kind kind) {
    switch (kind) {
      case train::TimelineSpan::Kind::training:
        return "training";
      case train::TimelineSpan::Kind::upload:
        return "upload";
      case train::TimelineSpan::Kind::validation:
        return "validation";
      case train::TimelineSpan::Kind::failed:
        break;
    }
    return "failed";
  }

  const Source& source_;
  const ResultGrid& grid_;
  std::vector<std::vector<CurveOrigin>> origins_;
  std::vector<std::optional<double>> scores_ = {};
  std::optional<std::size_t> best_ = {};
  std::vector<std::size_t> chosen_ = {};  // indices in the grid
  std::vector<bool> is_chosen_ = {};
  std::map<std::size_t, std::size_t> place_ = {};  // from an index in the grid to one in the document
  Curves curves_ = {};
};

}  // namespace

std::vector<std::size_t> sampled_trials(const std::vector<std::optional<double>>& losses,
                                        const std::vector<std::size_t>& needed, std::size_t most) {
  std::vector<std::size_t> all(losses.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (all.size() <= most) return all;
  std::set<std::size_t> chosen;
  for (const std::size_t i : needed) {
    if (chosen.size() < most) chosen.insert(i);
  }
  std::vector<std::size_t> best;
  std::ranges::copy_if(all, std::back_inserter(best), [&](std::size_t i) { return losses[i].has_value(); });
  std::ranges::stable_sort(best, {}, [&](std::size_t i) { return *losses[i]; });
  for (const std::size_t i : best) {
    if (chosen.size() >= std::max(most / 2, std::min(needed.size(), most))) break;
    chosen.insert(i);
  }
  std::vector<std::size_t> others;
  std::ranges::copy_if(all, std::back_inserter(others), [&](std::size_t i) { return !chosen.contains(i); });
  const std::size_t more = std::min(most - chosen.size(), others.size());
  for (std::size_t i = 0; i < more; ++i) chosen.insert(others[i * others.size() / more]);
  return {chosen.begin(), chosen.end()};
}

Value document_of(const Source& source, CurveReader& curves) { return DocumentMaker(source, curves).make(); }

Value document_of(const Source& source) {
  CurveReader curves;
  return document_of(source, curves);
}

Value unreadable(const std::string& name, const std::string& reason) {
  return Dict{{"version", kDocumentVersion}, {"kind", "unreadable"}, {"name", name}, {"reason", reason}};
}

}  // namespace cadre::report
