// cadre ls: the experiments below a directory.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>

#include "cadre/error.h"
#include "cli/commands.h"
#include "cli/listing.h"
#include "cli/output.h"
#include "storage/uri.h"
#include "store/run_directory.h"

namespace cadre::cli {
namespace fs = std::filesystem;
namespace {

struct LsOptions {
  std::string directory = {};
  std::string sort = "last";
  bool descending = false;
  std::size_t limit = 0;
  bool all = false;
  bool json = false;
};

void sort(std::vector<Listed>& experiments, const LsOptions& options) {
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
  constexpr std::size_t kTrials = 2;
  Table table{.columns = {column("name", 0), column("state", 1), column("trials", 3), column("done", 3, true),
                          column("metric", 4), column("best", 2, true), column("last event", 2)}};
  for (const Listed& one : experiments) {
    const tune::ExperimentSummary& summary = one.summary;
    const bool readable = one.error.empty();
    const bool is_underway = one.progress.done && summary.state != tune::ExperimentState::finished;
    const std::string progress = is_underway ? fmt::format("{:.0f} %", 100 * *one.progress.done) : "";
    const Style style = !readable                                             ? Style::bad
                        : summary.state == tune::ExperimentState::finished    ? Style::good
                        : summary.state == tune::ExperimentState::interrupted ? Style::dim
                                                                              : Style::plain;
    const std::array cells{text_cell(one.name),
                           text_cell(readable ? one.state : "unreadable", style),
                           text_cell(one.trials),
                           number_cell(progress),
                           text_cell(summary.metric),
                           one.best ? number_cell(fmt::format("{:.6g}", *one.best)) : text_cell(""),
                           number_cell(time_text(summary.last_event))};
    for (std::size_t i = 0; i < cells.size(); ++i) table.columns[i].cells.push_back(cells[i]);
  }
  table.columns[kTrials].keeps_beginning = true;
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

void run(const LsOptions& options) {
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
  const auto options = std::make_shared<LsOptions>();
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
