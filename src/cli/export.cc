// cadre export: results for other programs.
#include <fstream>
#include <iostream>
#include <memory>

#include "base/output_file.h"
#include "cadre/error.h"
#include "cli/commands.h"
#include "cli/exports.h"
#include "cli/find.h"
#include "cli/output.h"
#include "cli/training_run.h"

namespace cadre::cli {
namespace {

struct ExportOptions {
  std::string experiment = {};
  std::string format = "csv";
  bool all = false;
  bool best = false;
  std::string metric = {};
  std::string mode = {};
  std::string output = {};
  std::string mlflow = {};
  std::string parquet = {};
  std::string optuna = {};
  std::vector<std::string> objectives = {};
};

// The results of an experiment's trials, or of a training run. `metric`: its name in them.
struct Results {
  tune::ResultGrid grid;
  std::string metric;
};

Results open(const ExportOptions& options) {
  const Found found = find_directory(options.experiment);
  if (!is_training_run(found.directory)) return {open_experiment(found), options.metric};
  const TrainingRun run = read_training_run(found.directory);
  return {as_experiment(run), name_in_rows(run, options.metric)};
}

// Returns which results are wanted; `rows`: without --all and --best.
tune::TableOptions table_of(const Results& results, const ExportOptions& options, tune::Rows rows) {
  if (!options.best) return {.rows = options.all ? tune::Rows::all : rows};
  const auto [metric, mode] = direction_of(results.grid.summary(), results.metric, options.mode);
  return {.rows = tune::Rows::best, .metric = metric, .mode = mode};
}

void write_table(const Results& results, const ExportOptions& options) {
  const tune::TableOptions table = table_of(results, options, tune::Rows::last);
  const auto write_to = [&](std::ostream& out) {
    options.format == "csv" ? results.grid.write_csv(out, table) : results.grid.write_json_lines(out, table);
  };
  if (options.output.empty() || options.output == "-") return write_to(std::cout);
  base::OutputFile output(options.output);
  std::ofstream file(output.path(), std::ios::binary);
  if (!file) throw StorageError("cannot write " + options.output + ": is it a file in a directory that exists?");
  write_to(file);
  file.close();
  if (!file) throw StorageError("cannot write " + options.output + ": is the disk full?");
  output.finish();
}

std::vector<Objective> study_objectives(const Results& results, const ExportOptions& options) {
  const tune::ExperimentSummary& summary = results.grid.summary();
  if (!options.objectives.empty()) return objectives_of(summary, options.objectives);
  if (summary.metric.empty() || !summary.mode) return {};
  return {{summary.metric, summary.mode}};
}

// Throws InvalidArgument for an option that would count only with another one.
void require_used(const ExportOptions& options) {
  if (!options.best && !(options.metric.empty() && options.mode.empty()))
    throw InvalidArgument("--metric and --mode say what the best result is: add --best");
  if (options.optuna.empty() && !options.objectives.empty())
    throw InvalidArgument("--objectives are those of a study of Optuna's: add --optuna FILE");
}

void run(const ExportOptions& options) {
  require_used(options);
  const Results results = open(options);
  if (!options.mlflow.empty()) {
    for (const std::string& note : export_mlflow(results.grid, options.mlflow))
      std::cerr << "cadre: " << shown(note) << '\n';
    return write_path(options.mlflow);
  }
  if (!options.parquet.empty()) {
    export_parquet(results.grid, table_of(results, options, tune::Rows::all), options.parquet);
    return write_path(options.parquet);
  }
  if (!options.optuna.empty()) {
    export_optuna(results.grid, study_objectives(results, options), options.optuna);
    return write_path(options.optuna);
  }
  write_table(results, options);
}

}  // namespace

void add_export(Command& program) {
  const auto options = std::make_shared<ExportOptions>();
  Command command = program.add_command("export", "Write the results for other programs");
  command.option("experiment", &options->experiment, "Its directory, name or URI, or a training run's").required();
  const Option format =
      command.option("--format", &options->format, "csv or jsonl").one_of({"csv", "jsonl"}).show_default();
  const Option all = command.flag("--all", &options->all, "All results [the last one of each trial]");
  const Option best = command.flag("--best", &options->best, "The best result of each trial").excludes(all);
  command.option("--metric", &options->metric, "For --best: what counts [the experiment's metric]");
  command.option("--mode", &options->mode, "For --best: max or min [the experiment's]").one_of({"max", "min"});
  const Option output = command.option("-o,--output", &options->output, "A file [standard output]");
  const Option parquet = command.option("--parquet", &options->parquet, "A Parquet file of all results, or with --best")
                             .named("FILE")
                             .excludes(format)
                             .excludes(output);
  const Option mlflow = command.option("--mlflow", &options->mlflow, "A store of MLflow's, with other experiments, too")
                            .named("DIRECTORY");
  const Option optuna =
      command.option("--optuna", &options->optuna, "A journal of Optuna's with one study").named("FILE");
  for (const Option& other : {format, output, all, best, parquet}) {
    Option(mlflow).excludes(other);
    Option(optuna).excludes(other);
  }
  Option(mlflow).excludes(optuna);
  command.option("--objectives", &options->objectives, "For --optuna: loss:min,size:min [the metric]")
      .separated_by(',');
  command.footer(
      "pandas reads them with read_csv(file, dtype={\"trial_id\": str}),\n"
      "read_json(file, lines=True, dtype={\"trial_id\": str}) and read_parquet(file).\n"
      "MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri DIRECTORY shows\n"
      "MLflow's, and optuna-dashboard FILE Optuna's.");
  command.on_call([options] { run(*options); });
}

}  // namespace cadre::cli
