// cadre export: results as a table for other programs.
#include <fstream>
#include <iostream>
#include <memory>

#include "cadre/error.h"
#include "cli/commands.h"
#include "cli/find.h"
#include "cli/output.h"

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

void write(const tune::ResultGrid& grid, const Options& options, std::ostream& out) {
  tune::TableOptions table{.rows = options.all ? tune::Rows::all : tune::Rows::last};
  if (options.best) {
    const auto [metric, mode] = direction_of(grid.summary(), options.metric, options.mode);
    table = {.rows = tune::Rows::best, .metric = metric, .mode = mode};
  }
  options.format == "csv" ? grid.write_csv(out, table) : grid.write_json_lines(out, table);
}

void run(const Options& options) {
  const tune::ResultGrid grid = open_experiment(options.experiment);
  if (options.output.empty() || options.output == "-") return write(grid, options, std::cout);
  std::ofstream file(options.output, std::ios::binary);
  if (!file) throw StorageError("cannot write " + options.output + ": is it a file in a directory that exists?");
  write(grid, options, file);
}

}  // namespace

void add_export(Command& program) {
  const auto options = std::make_shared<Options>();
  Command command = program.add_command("export", "Write the results as CSV or lines of JSON");
  command.option("experiment", &options->experiment, "Its directory, name or URI").required();
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
