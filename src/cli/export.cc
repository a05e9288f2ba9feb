// cadre export: results as a table for other programs.
#include <fstream>
#include <iostream>
#include <memory>

#include "cadre/error.h"
#include "cli/commands.h"
#include "cli/find.h"
#include "cli/output.h"
#include "cli/training_run.h"

namespace cadre::cli {
namespace {

struct Options {
  std::string experiment = {};
  std::string format = "csv";
  bool all = false;
  bool best = false;
  std::string metric = {};
  std::string mode = {};
  std::string output = {};
};

// The results of an experiment's trials, or of a training run. `metric`: its name in them.
struct Results {
  tune::ResultGrid grid;
  std::string metric;
};

Results open(const Options& options) {
  const Found found = find_directory(options.experiment);
  if (!is_training_run(found.directory)) return {open_experiment(found), options.metric};
  const TrainingRun run = read_training_run(found.directory);
  return {as_experiment(run), name_in_rows(run, options.metric)};
}

void write(const Results& results, const Options& options, std::ostream& out) {
  const tune::ResultGrid& grid = results.grid;
  tune::TableOptions table{.rows = options.all ? tune::Rows::all : tune::Rows::last};
  if (options.best) {
    const auto [metric, mode] = direction_of(grid.summary(), results.metric, options.mode);
    table = {.rows = tune::Rows::best, .metric = metric, .mode = mode};
  }
  options.format == "csv" ? grid.write_csv(out, table) : grid.write_json_lines(out, table);
}

void run(const Options& options) {
  const Results results = open(options);
  if (options.output.empty() || options.output == "-") return write(results, options, std::cout);
  std::ofstream file(options.output, std::ios::binary);
  if (!file) throw StorageError("cannot write " + options.output + ": is it a file in a directory that exists?");
  write(results, options, file);
}

}  // namespace

void add_export(Command& program) {
  const auto options = std::make_shared<Options>();
  Command command = program.add_command("export", "Write the results as CSV or lines of JSON");
  command.option("experiment", &options->experiment, "Its directory, name or URI, or a training run's").required();
  command.option("--format", &options->format, "csv or jsonl").one_of({"csv", "jsonl"}).show_default();
  const Option all = command.flag("--all", &options->all, "All results [the last one of each trial]");
  command.flag("--best", &options->best, "The best result of each trial").excludes(all);
  command.option("--metric", &options->metric, "For --best: what counts [the experiment's metric]");
  command.option("--mode", &options->mode, "For --best: max or min [the experiment's]").one_of({"max", "min"});
  command.option("-o,--output", &options->output, "A file [standard output]");
  command.footer(
      "pandas reads them with read_csv(file, dtype={\"trial_id\": str}) and\n"
      "read_json(file, lines=True, dtype={\"trial_id\": str}).");
  command.on_call([options] { run(*options); });
}

}  // namespace cadre::cli
