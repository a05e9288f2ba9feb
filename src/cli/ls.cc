// cadre ls: the experiments below a directory.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>

#include "cadre/error.h"
#include "cadre/tune/study.h"
#include "cli/commands.h"
#include "cli/documents.h"
#include "cli/find.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/training_run.h"
#include "publish/restore.h"
#include "store/read_store.h"
#include "store/run_directory.h"
#include "tune/console/trial_table.h"
#include "tune/experiment_directory.h"

namespace cadre::cli {
namespace fs = std::filesystem;
namespace {

constexpr int kDeepest = 8;  // levels below the directory

struct Options {
  std::string directory = {};
  std::string sort = "last";
  bool descending = false;
  std::size_t limit = 0;
  bool all = false;
  bool json = false;
};

struct Listed {
  std::string name = {};  // relative to the directory
  tune::ExperimentSummary summary = {};
  std::string state = {};
  std::string trials = {};    // "4 TERMINATED, 1 ERROR"
  std::string progress = {};  // "37 %"; empty: unknown
  std::size_t trial_count = 0;
  std::optional<double> best = {};
  std::string best_trial = {};
  std::string error = {};  // why it cannot be read; empty: it can
  Dict document = {};
};

bool is_listed(const fs::path& directory) { return store::has_store(directory) || tune::Study::exists(directory); }

// Adds the directories of experiments and studies below a directory, except those inside one. Does not follow links,
// and passes over what cannot be read or is deleted meanwhile.
void find_experiments(const fs::path& directory, int depth, std::vector<fs::path>& found) {
  std::error_code gone;
  for (fs::directory_iterator it(directory, gone); it != fs::directory_iterator(); it.increment(gone)) {
    std::error_code unreadable;
    if (!it->is_directory(unreadable) || it->is_symlink(unreadable)) continue;
    if (is_listed(it->path())) {
      found.push_back(it->path());
    } else if (depth < kDeepest) {
      find_experiments(it->path(), depth + 1, found);
    }
  }
}

std::vector<fs::path> find_experiments(const fs::path& directory) {
  if (is_listed(directory)) return {directory};
  std::vector<fs::path> found;
  find_experiments(directory, 1, found);
  return found;
}

// Returns nullptr if the experiment has no metric, or no trial has reported it yet.
const tune::Result* best_of(const tune::ResultGrid& grid) {
  try {
    return &grid.get_best_result();
  } catch (const InvalidArgument&) {
    return nullptr;
  } catch (const NotFound&) {
    return nullptr;
  }
}

Listed look_at(const TrainingRun& run, Listed listed) {
  listed.state = run.state;
  listed.trials = fmt::format("run, {} reports", run.result.metrics_history.size());
  listed.summary.last_event = run.last_event;
  listed.summary.state = run.state == "finished"  ? tune::ExperimentState::finished
                         : run.state == "running" ? tune::ExperimentState::running
                                                  : tune::ExperimentState::interrupted;
  listed.summary.controller = run.controller;
  listed.document = document_of(run);
  return listed;
}

Listed look_at(const fs::path& path, std::string name) {
  Listed listed{.name = std::move(name)};
  try {
    if (is_training_run(path)) return look_at(read_training_run(path), std::move(listed));
    const tune::ResultGrid grid = tune::ResultGrid::from_directory(path);
    listed.summary = grid.summary();
    listed.state = to_string(listed.summary.state);
    listed.trials = tune::console::counts_text(tune::console::status_counts(grid));
    listed.trial_count = grid.size();
    const Progress progress = progress_of(grid);
    if (progress.done && listed.summary.state != tune::ExperimentState::finished)
      listed.progress = fmt::format("{:.0f} %", 100 * *progress.done);
    if (const tune::Result* best = best_of(grid)) {
      listed.best = best->metrics.get<double>(grid.summary().metric);
      listed.best_trial = best->trial_id;
    }
    listed.document = document_of(listed.summary, grid);
    listed.document.emplace_back("best", listed.best ? Value(*listed.best) : Value());
    listed.document.emplace_back("best_trial", listed.best ? Value(listed.best_trial) : Value());
    listed.document.emplace_back("error", Value());
  } catch (const Error& error) {
    listed.error = error.what();
    listed.document = {{"name", fs::canonical(path).filename().string()},
                       {"path", place_text(fs::canonical(path))},
                       {"error", listed.error}};
  }
  return listed;
}

std::vector<Listed> look_below(const fs::path& directory) {
  std::error_code unreadable;
  if (!fs::is_directory(directory, unreadable)) throw NotFound("there is no directory " + directory.string());
  std::vector<Listed> experiments;
  for (const fs::path& path : find_experiments(directory))
    experiments.push_back(
        look_at(path, path == directory ? fs::canonical(path).filename() : path.lexically_relative(directory)));
  return experiments;
}

// Lists the runs published below a URI.
std::vector<Listed> look_below(const storage::Uri& folder) {
  std::vector<Listed> experiments;
  for (const storage::StoredFile& file : storage::open_storage(folder)->list("")) {
    const fs::path path = file.name;
    if (path.filename() != publish::kManifestFile) continue;
    const storage::Uri uri = path.has_parent_path() ? folder / path.parent_path().string() : folder;
    try {
      experiments.push_back(look_at(*publish::reading_copy(uri), path.parent_path()));
    } catch (const Error& error) {
      experiments.push_back({.name = path.parent_path(), .error = error.what()});
      experiments.back().document = {
          {"name", name_of(uri)}, {"path", to_string(uri)}, {"error", experiments.back().error}};
    }
  }
  return experiments;
}

void sort(std::vector<Listed>& experiments, const Options& options) {
  std::ranges::sort(experiments, {}, &Listed::name);
  const auto by = [&](const auto& key) { std::ranges::stable_sort(experiments, key); };
  if (options.sort == "last")
    by([](const Listed& a, const Listed& b) { return a.summary.last_event > b.summary.last_event; });
  if (options.sort == "started")
    by([](const Listed& a, const Listed& b) { return a.summary.started > b.summary.started; });
  if (options.sort == "trials") by([](const Listed& a, const Listed& b) { return a.trial_count > b.trial_count; });
  if (options.sort == "state") by([](const Listed& a, const Listed& b) { return a.summary.state < b.summary.state; });
  if (options.descending) std::ranges::reverse(experiments);
}

Table table_of(const std::vector<Listed>& experiments) {
  Table table{.columns = {column("name", 0), column("state", 1), column("trials", 3), column("done", 3, true),
                          column("metric", 4), column("best", 2, true), column("last event", 2)}};
  for (const Listed& one : experiments) {
    const tune::ExperimentSummary& summary = one.summary;
    const bool readable = one.error.empty();
    const Style style = !readable                                             ? Style::bad
                        : summary.state == tune::ExperimentState::finished    ? Style::good
                        : summary.state == tune::ExperimentState::interrupted ? Style::dim
                                                                              : Style::plain;
    const std::array cells{text_cell(one.name),
                           text_cell(readable ? one.state : "unreadable", style),
                           text_cell(one.trials),
                           number_cell(one.progress),
                           text_cell(summary.metric),
                           one.best ? number_cell(fmt::format("{:.6g}", *one.best)) : text_cell(""),
                           number_cell(time_text(summary.last_event))};
    for (std::size_t i = 0; i < cells.size(); ++i) table.columns[i].cells.push_back(cells[i]);
  }
  return table;
}

// Returns the notes below the table: the controllers of running experiments, and why an experiment cannot be read.
std::vector<std::pair<std::string, Style>> notes_of(const std::vector<Listed>& experiments) {
  std::vector<std::pair<std::string, Style>> notes;
  for (const Listed& one : experiments) {
    if (!one.summary.controller.empty() && one.error.empty() && one.summary.state == tune::ExperimentState::running)
      notes.emplace_back(fmt::format("{} is run by {}", shown(one.name), shown(one.summary.controller)), Style::plain);
    if (!one.error.empty()) notes.emplace_back(shown(one.name) + ": " + shown(one.error), Style::bad);
  }
  return notes;
}

void run(const Options& options) {
  const std::string directory = options.directory.empty() ? store::default_storage_path().string() : options.directory;
  std::error_code unreadable;
  if (options.directory.empty() && !fs::is_directory(directory, unreadable))
    throw NotFound("there is no directory " + directory + " yet: name another one");
  const bool is_uri = storage::is_uri(directory);
  std::vector<Listed> experiments =
      is_uri ? look_below(storage::parse_uri(directory)) : look_below(fs::path(directory));
  sort(experiments, options);
  const std::size_t found = experiments.size();
  Page page;
  const std::size_t most = options.limit > 0 ? options.limit
                           : options.all || options.json
                               ? found
                               : page.rows_that_fit(notes_of(experiments).size() + 1).value_or(found);
  if (found > most) experiments.resize(most);
  if (options.json) {
    List documents;
    for (Listed& one : experiments) documents.push_back(std::move(one.document));
    return write_json(Dict{{"directory", is_uri ? directory : fs::canonical(directory).string()},
                           {"experiments", std::move(documents)}});
  }
  if (found == 0) {
    page.line("No experiments below " + shown(directory));
  } else {
    page.table(table_of(experiments));
  }
  if (experiments.size() < found)
    page.line(fmt::format("... {} more{}", found - experiments.size(), options.limit > 0 ? "" : "; --all shows them"),
              Style::dim);
  for (const auto& [text, style] : notes_of(experiments)) page.line(text, style);
  page.write();
}

}  // namespace

void add_ls(Command& program) {
  const auto options = std::make_shared<Options>();
  Command command = program.add_command("ls", "List the experiments below a directory");
  command.option("directory", &options->directory, "Where to look [~/cadre_results]");
  command.option("--sort", &options->sort, "last: newest first; name, state, started or trials")
      .one_of({"last", "name", "state", "started", "trials"})
      .show_default();
  command.flag("--reverse", &options->descending, "The other way round");
  command.option("--limit", &options->limit, "Show so many [as many as fit]");
  command.flag("--all", &options->all, "Show all");
  command.flag("--json", &options->json, "One JSON document with everything");
  command.on_call([options] { run(*options); });
}

}  // namespace cadre::cli
