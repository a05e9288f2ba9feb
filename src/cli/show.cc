// cadre show: an experiment with its trials, or one trial.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/host_object.h"
#include "base/native_stack.h"
#include "base/reason_line.h"
#include "cadre/error.h"
#include "cli/columns.h"
#include "cli/commands.h"
#include "cli/documents.h"
#include "cli/find.h"
#include "cli/option_texts.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/training_run.h"
#include "tune/console/status_block.h"
#include "tune/console/trial_table.h"

namespace cadre::cli {
namespace {

using tune::Result;
using tune::ResultGrid;

constexpr std::size_t kMostFailureLines = 10;

struct ShowOptions {
  std::string experiment = {};
  std::string trial = {};
  Order order = {};
  std::vector<std::string> columns = {};
  bool all = false;
  bool json = false;
};

// ---- An experiment

std::vector<tune::console::TrialRow> rows_of(const std::vector<const Result*>& trials) {
  std::vector<tune::console::TrialRow> rows;
  for (const Result* trial : trials) rows.push_back({trial->trial_id, trial->status, &trial->config, &trial->metrics});
  return rows;
}

// Returns a table of the chosen columns.
Table table_of(const std::vector<const Result*>& trials, const std::vector<std::string>& chosen) {
  Table table{.title = "Trials", .columns = {tune::console::id_column(rows_of(trials))}};
  int rank = 0;
  for (const std::string& name : chosen) {
    if (name == "trial_id") continue;
    Column made = column(name, rank++);
    if (name == "status") {
      made.cells = tune::console::status_column(rows_of(trials)).cells;
    } else {
      for (const Result* trial : trials) {
        const std::optional<Value> value = value_of(*trial, name);
        made.cells.push_back(value_cell(value ? &*value : nullptr));
      }
    }
    table.columns.push_back(std::move(made));
  }
  return table;
}

// Returns what continues an experiment that was interrupted.
std::string restore_text(const ResultGrid& grid) {
  const Value* command = grid.summary().options.find("trainable/program/command");
  const bool is_of_program = command != nullptr && command->is_list() && !command->items().empty();
  return is_of_program ? "cadre tune --restore " + shown(place_text(grid.experiment_path())) : "Tuner::restore";
}

std::string state_text(const ResultGrid& grid) {
  const tune::ExperimentSummary& summary = grid.summary();
  std::string text = state_name(summary);
  if (summary.state == tune::ExperimentState::running && !summary.controller.empty())
    text += " by " + shown(summary.controller);
  if (summary.state == tune::ExperimentState::interrupted) text += "; " + restore_text(grid) + " continues it";
  if (!summary.stop_reason.empty()) text += "; all trials were stopped: " + shown(summary.stop_reason);
  return text;
}

std::string parameters_text(const Result& trial, const std::vector<std::string>& parameters) {
  std::string text;
  for (const std::string& path : parameters) {
    if (const Value* value = trial.config.find(path)) text += fmt::format(" {}={}", shown(path), value_text(*value));
  }
  return text;
}

std::string best_text(const ResultGrid& grid) {
  const std::string& metric = grid.summary().metric;
  const auto scores = metric.empty() ? std::vector<std::optional<double>>() : grid.scores(metric, tune::Scope::last);
  if (std::ranges::none_of(scores, [](const auto& score) { return score.has_value(); })) return {};
  const Result& best = grid.get_best_result();
  return fmt::format("trial {} with {}={:.6g},{}", best.trial_id, shown(metric), best.metrics.get<double>(metric),
                     parameters_text(best, parameters_of(grid)));
}

// Sorts the best trial first if the experiment has a metric and the user has not chosen another order.
Order table_order(const ResultGrid& grid, Order order) {
  const std::string& metric = grid.summary().metric;
  const bool is_known = !metric.empty() && std::ranges::any_of(grid, [&](const Result& trial) {
    return value_of(trial, metric).has_value();
  });
  if (!order.sort.empty() || !is_known) return order;
  order.sort = metric;
  order.descending = (grid.summary().mode == Mode::max) != order.descending;
  return order;
}

// Trials that have failed for the same reason: the same line of their errors, as base::reason_line() finds it.
struct SameFailures {
  std::string reason = {};
  std::string first = {};  // its id
  std::size_t count = 0;
};

// Returns a line for each reason, in the order of the first trials that failed for it.
std::vector<std::string> failure_lines(const std::vector<const Result*>& trials) {
  std::vector<SameFailures> failures;
  std::map<std::string, std::size_t> places;  // by the reason
  for (const Result* trial : trials) {
    if (!trial->error) continue;
    const std::string reason = shown(base::reason_line(*trial->error));
    const auto [place, is_new] = places.emplace(reason, failures.size());
    if (is_new) failures.push_back({.reason = reason, .first = trial->trial_id});
    ++failures[place->second].count;
  }
  std::vector<std::string> lines;
  for (const auto& [reason, first, count] : failures) {
    lines.push_back(count == 1 ? fmt::format("Trial {} failed: {}", first, reason)
                               : fmt::format("{} trials failed, as trial {}: {}", count, first, reason));
  }
  return lines;
}

void show_experiment(const ResultGrid& grid, const ShowOptions& options) {
  const tune::ExperimentSummary& summary = grid.summary();
  check_columns(grid, options.columns);
  std::vector<const Result*> trials =
      choose_trials(grid, options.json ? options.order : table_order(grid, options.order));
  if (options.json) {
    List documents;
    for (const Result* trial : trials) documents.push_back(document_of(*trial));
    return write_json(Dict{{"experiment", document_of(summary, grid)}, {"trials", std::move(documents)}});
  }
  Page page;
  page.heading("Experiment " + shown(summary.name));
  page.field("state", state_text(grid));
  page.field("directory", shown(place_text(grid.experiment_path())));
  page.field("trainable", shown(summary.trainable));
  for (const auto& [label, text] : option_texts(summary.options)) page.field(label, text);
  page.field("started", time_text(summary.started));
  if (summary.last_event > 0)  // a study has no times
    page.field("last event", fmt::format("{}, after {}{}", time_text(summary.last_event),
                                         tune::console::duration_text(summary.running_seconds),
                                         summary.sessions > 1 ? fmt::format(" in {} sessions", summary.sessions) : ""));
  const std::string counts = tune::console::counts_text(tune::console::status_counts(grid));
  page.field("trials", counts.empty() ? "none yet" : counts);
  page.field("progress", progress_text(progress_of(grid), summary.state));
  page.field("best", best_text(grid));
  std::vector<std::string> failures = failure_lines(trials);
  const std::size_t more_failures =
      options.all || failures.size() <= kMostFailureLines ? 0 : failures.size() - kMostFailureLines;
  failures.resize(failures.size() - more_failures);
  if (more_failures > 0)
    failures.push_back(fmt::format("... {} more reasons of failures; --all shows them", more_failures));
  const std::size_t chosen = trials.size();
  const auto most = options.all || options.order.limit > 0 ? std::nullopt : page.rows_that_fit(failures.size() + 1);
  if (most && trials.size() > *most) trials.resize(*most);
  if (!trials.empty()) {
    page.table(options.columns.empty()
                   ? tune::console::trial_table(
                         rows_of(trials), {parameters_of(grid), metrics_of(grid), grid.summary().metric}, encoding())
                   : table_of(trials, options.columns));
  }
  if (trials.size() < chosen) {
    page.line(fmt::format("... {} more trials; --all shows them", chosen - trials.size()), Style::dim);
  } else if (chosen < grid.size()) {
    page.line(fmt::format("{} of {} trials", chosen, grid.size()), Style::dim);
  }
  for (const std::string& line : failures) page.line(line, Style::bad);
  page.write();
}

// ---- One trial

using Pairs = std::vector<std::pair<std::string, std::string>>;

// Collects entries into `flat`, nested ones by path, such as "optimizer/lr".
void collect(const Dict& entries, const std::string& prefix, Dict& flat) {
  for (const auto& [key, value] : entries) {
    if (value.is_dict() && !value.dict().empty()) {
      collect(value.dict(), prefix + key + "/", flat);
    } else {
      flat.emplace_back(prefix + key, value);
    }
  }
}

Dict flat(const Dict& entries) {
  Dict flat;
  collect(entries, "", flat);
  return flat;
}

void add_config(Page& page, const Result& trial) {
  Pairs pairs;
  const Config drawn_config(base::without_host_objects(trial.drawn_config.value()));
  for (const auto& [path, value] : flat(base::without_host_objects(trial.config.value()).dict())) {
    const Value* drawn = drawn_config.find(path);
    const bool same = drawn != nullptr && *drawn == value;
    pairs.emplace_back(shown(path), value_text(value) + (same               ? ""
                                                         : drawn == nullptr ? " (not drawn)"
                                                                            : " (drawn: " + value_text(*drawn) + ")"));
  }
  page.pairs("Config", pairs);
}

void add_exploits(Page& page, const Result& trial) {
  if (trial.exploits.empty()) return;
  Table table{.title = "Exploits",
              .columns = {column("at iter", 0), column("donor", 0), column("from iter", 0), column("key", 1),
                          column("before", 2), column("change", 2), column("after", 1)}};
  const auto add = [&](std::vector<Cell> cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) table.columns[i].cells.push_back(std::move(cells[i]));
  };
  for (const tune::ExploitRecord& exploit : trial.exploits) {
    std::vector<Cell> first{number_cell(std::to_string(exploit.training_iteration)), text_cell(exploit.donor),
                            number_cell(std::to_string(exploit.donor_iteration))};
    if (exploit.changes.empty()) {
      first.resize(table.columns.size());
      add(first);
    }
    for (const auto& [key, before, operation, after] : exploit.changes) {
      std::vector<Cell> cells = first;
      for (Cell& cell : first) cell.text.clear();
      cells.insert(cells.end(), {text_cell(key), value_cell(&before), text_cell(operation), value_cell(&after)});
      add(cells);
    }
  }
  page.table(table);
}

void add_result(Page& page, const Result& trial) {
  Pairs pairs;
  for (const auto& [path, value] : flat(trial.metrics.dict())) pairs.emplace_back(shown(path), value_text(value));
  page.pairs("Last result", pairs);
}

void add_checkpoints(Page& page, const ResultGrid& grid, const Result& trial) {
  const std::string& metric = grid.summary().metric;
  if (trial.best_checkpoints.empty()) return;
  Table table{.title = "Checkpoints kept", .columns = {column("directory", 0), column("iter", 0)}};
  if (!metric.empty()) table.columns.push_back(column(metric, 1));
  for (const auto& [checkpoint, metrics] : trial.best_checkpoints) {
    table.columns[0].cells.push_back(text_cell(checkpoint.path().filename().string()));
    table.columns[1].cells.push_back(value_cell(metrics.find("training_iteration")));
    if (!metric.empty()) table.columns[2].cells.push_back(value_cell(metrics.find(metric)));
  }
  page.table(table);
}

void show_trial(const ResultGrid& grid, const Result& trial, const ShowOptions& options) {
  if (options.json) return write_json(document_of(trial));
  Page page;
  page.heading(fmt::format("Trial {} of {}", trial.trial_id, shown(grid.summary().name)));
  page.field("status", to_string(trial.status));
  page.field("directory", shown(place_text(trial.path)));
  page.field("attempts", fmt::format("{}{}", trial.attempts,
                                     trial.failures == 0   ? ""
                                     : trial.failures == 1 ? ", failed once"
                                                           : fmt::format(", failed {} times", trial.failures)));
  page.field("results", std::to_string(trial.num_results()));
  if (trial.checkpoint) page.field("checkpoint", shown(place_text(trial.checkpoint->path())));
  add_config(page, trial);
  add_exploits(page, trial);
  add_result(page, trial);
  add_checkpoints(page, grid, trial);
  if (trial.error) page.line("Error:\n" + shown_lines(base::without_native_stacks(*trial.error)), Style::bad);
  page.write();
}

void run(const ShowOptions& options) {
  const Found found = find_directory(options.experiment);
  const bool is_run = is_training_run(found.directory);
  if (is_run && !options.trial.empty())
    throw InvalidArgument(options.experiment + " is a training run and has no trials: leave the trial out");
  if (is_run) return show(read_training_run(found.directory), options.json);
  const ResultGrid grid = open_experiment(found);
  if (options.trial.empty()) return show_experiment(grid, options);
  if (options.trial == "best") return show_trial(grid, grid.get_best_result(), options);
  show_trial(grid, find_trial(grid, options.trial), options);
}

}  // namespace

void add_show(Command& program) {
  const auto options = std::make_shared<ShowOptions>();
  Command command = program.add_command("show", "Show an experiment, a trial or a training run");
  command.option("experiment", &options->experiment, "Its directory, name or URI").required();
  command.option("trial", &options->trial, "One trial in detail: its id or number, or \"best\"");
  command.option("--sort", &options->order.sort, "Sort by a column [the metric, best first]");
  command.flag("--desc", &options->order.descending, "The other way round: highest first");
  command.option("--filter", &options->order.filters, "Only trials with \"column op value\"; repeatable");
  command.option("--columns", &options->columns, "Show these columns: a,b").separated_by(',');
  command.option("--limit", &options->order.limit, "Show so many trials [as many as fit]");
  command.flag("--all", &options->all, "Show all trials, and all reasons of failures");
  command.flag("--json", &options->json, "One JSON document with everything");
  command.footer(
      "A filter is as \"loss < 0.5\", with one of < <= == != >= >.\n"
      "Columns are metrics of the last result, parameters (lr or config/lr), trial_id,\n"
      "status, error, attempts, failures, results and exploits.");
  command.on_call([options] { run(*options); });
}

}  // namespace cadre::cli
