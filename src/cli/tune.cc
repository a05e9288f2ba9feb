// cadre tune: an experiment of any program.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cadre/error.h"
#include "cadre/init.h"
#include "cadre/tune/callback.h"
#include "cadre/tune/study.h"
#include "cadre/tune/tuner.h"
#include "cli/commands.h"
#include "cli/find.h"
#include "cli/output.h"
#include "cli/tune_file.h"
#include "control/beginning.h"
#include "store/run_directory.h"
#include "tune/description.h"
#include "tune/program/metric_watch.h"
#include "tune/program/placeholders.h"
#include "tune/searchers/variant_generator.h"
#include "view/output.h"
#include "worker/cluster.h"

namespace cadre::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostChecked = 10;  // trials that --check shows

struct TuneOptions {
  fs::path file = {};
  std::vector<std::string> command = {};
  std::vector<std::string> changes = {};
  std::string restore = {};
  std::string extend = {};
  std::string cluster = {};
  double cpus = -1;
  double gpus = -1;
  bool check = false;
  bool resume_errored = false;
  bool restart_errored = false;
};

// ---- --check

// Returns a word as a shell reads it.
std::string quoted(const std::string& word) {
  const bool is_plain = !word.empty() && word.find_first_not_of(
                                             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                             "0123456789_-./:=,+@%") == word.npos;
  if (is_plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

std::string command_line(const tune::Program& program, const Config& config) {
  const auto value_of = [&config](const std::string& name) {
    const Value* value = config.find(name);
    return value == nullptr ? "$" + name : tune::argument_text(*value);
  };
  std::string line;
  for (const std::string& word : program.command)
    line += (line.empty() ? "" : " ") + quoted(line.empty() ? word : tune::fill_placeholders(word, value_of));
  return line;
}

// Shows the first trials, of which nothing is told to the searcher.
void check(const TuneFile& file, const tune::Trainable& trainable) {
  const tune::Tuner tuner(trainable, file.options);  // throws if anything is wrong
  tune::Study study(file.options.param_space, file.options.tune_config);
  // A sample is a trial for each combination of grids.
  const auto trials =
      static_cast<std::size_t>(tune::VariantGenerator(file.options.param_space, file.options.tune_config).size());
  Page page;
  page.line(fmt::format("{} {}:", trials, trials == 1 ? "trial" : "trials"));
  for (std::size_t i = 0; i < std::min(trials, kMostChecked); ++i) {
    const std::optional<tune::Suggestion> made = study.suggest();
    if (!made) {
      page.line("  the searcher waits for results before it suggests more");
      break;
    }
    page.line("  " + shown(command_line(trainable.program, made->config)));
  }
  if (trials > kMostChecked) page.line(fmt::format("  and {} more", trials - kMostChecked));
  page.write();
}

// ---- The experiment

void warn(const std::string& message) { view::print_error("cadre: " + shown_lines(message) + "\n"); }

std::shared_ptr<tune::Callback> metric_watch() { return std::make_shared<tune::MetricWatch>(warn); }

tune::RestoreOptions restore_options(const TuneOptions& options) {
  return {.resume_errored = options.resume_errored,
          .restart_errored = options.restart_errored,
          .run_program = true,
          .callbacks = {metric_watch()}};
}

// Says in terms of the command line what the Tuner says in those of the API.
void refuse_existing(const tune::RunConfig& run) {
  if (run.name.empty() || run.if_exists != IfExists::fail) return;
  const fs::path directory = (run.storage_path.empty() ? store::default_storage_path() : run.storage_path) / run.name;
  if (!tune::Tuner::can_restore(directory)) return;
  throw InvalidArgument(
      fmt::format("the experiment {0} exists already. To continue it: cadre tune --restore {0}. To "
                  "have the same command continue it, write if_exists = \"restore\"; or give this "
                  "one another name: --set name=...",
                  directory.string()));
}

// Returns the options that an experiment has now.
tune::TunerOptions present_options(const fs::path& directory) {
  const control::StoredOptions stored = control::read_options(directory);
  return tune::parse_description(stored.options, stored.source).options;
}

tune::Tuner make_tuner(const TuneOptions& options) {
  if (options.file.empty() || !options.extend.empty()) {
    const std::string& name = options.extend.empty() ? options.restore : options.extend;
    const Found found = find_directory(name);
    tune::RestoreOptions restore = restore_options(options);
    if (!options.extend.empty())
      restore.extend = read_extension(options.file, options.changes, present_options(found.directory));
    return tune::Tuner::restore(found.copy ? fs::path(name) : found.directory, restore);
  }
  TuneFile file = read_tune_file(options.file, options.changes, options.command);
  refuse_existing(file.options.run_config);
  file.options.run_config.callbacks.push_back(metric_watch());
  return {tune::with_resources(file.program, file.resources), file.options};
}

std::optional<double> amount(double number) { return number < 0 ? std::nullopt : std::optional(number); }

void check_usage(const TuneOptions& options) {
  const bool continues = !options.restore.empty() || !options.extend.empty();
  if (!options.restore.empty() && !options.extend.empty())
    throw InvalidArgument(
        "--restore continues an experiment as it is, and --extend with other options: give one of them");
  if (options.extend.empty() ? options.file.empty() == options.restore.empty()
                             : options.file.empty() && options.changes.empty())
    throw InvalidArgument(
        options.extend.empty()
            ? "name a file, as in cadre tune tune.toml, or an experiment to continue: --restore EXPERIMENT"
            : "say what is new, as in --extend EXPERIMENT --set num_samples=40, or name a file that has it");
  if (options.check && continues) throw InvalidArgument("--check is for a new experiment");
  if (!options.command.empty() && continues)
    throw InvalidArgument("the program of an experiment that goes on stays as it is");
  if ((options.resume_errored || options.restart_errored) && !continues)
    throw InvalidArgument(
        "--resume-errored and --restart-errored are for an experiment that goes on: name it, as in "
        "cadre tune --restore EXPERIMENT --resume-errored");
  if (!options.restore.empty() && !options.changes.empty())
    throw InvalidArgument("--restore continues an experiment as it is; --extend EXPERIMENT --set KEY=VALUE changes it");
}

// Does not return in an agent on a node, which may lack the file. Agents get the options that matter to them, so that
// those of an experiment that was killed serve `cadre tune --restore`, too.
void prepare(const TuneOptions& options) {
  if (!options.cluster.empty()) worker::set_cluster(options.cluster);
  std::vector<std::string> words{"cadre", "tune"};
  if (options.cpus >= 0) words.push_back(fmt::format("--cpus={}", options.cpus));
  if (options.gpus >= 0) words.push_back(fmt::format("--gpus={}", options.gpus));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  init(static_cast<int>(words.size()), arguments.data(),
       {.num_cpus = amount(options.cpus), .num_gpus = amount(options.gpus)});
}

// Throws if trials have failed, so that the exit code says so.
void run(const TuneOptions& options) {
  prepare(options);
  check_usage(options);
  if (options.check) {
    const TuneFile file = read_tune_file(options.file, options.changes, options.command);
    return check(file, tune::with_resources(file.program, file.resources));
  }
  const tune::ResultGrid results = make_tuner(options).fit();
  if (const std::size_t failed = results.num_errors(); failed > 0)
    throw Error(fmt::format("{} of {} trials failed: cadre show {}", failed, results.size(),
                            results.experiment_path().string()));
  if (const std::string message = tune::missing_metric(results); !message.empty()) warn(message);
}

}  // namespace

void add_tune(Command& program) {
  const auto options = std::make_shared<TuneOptions>();
  Command command = program.add_command("tune", "Tune any program");
  command.option("file", &options->file, "The experiment, in TOML").named("FILE");
  command.option("command", &options->command, "The program and its arguments, after --");
  command.option("--set", &options->changes, "An entry that replaces one of FILE").named("KEY=VALUE");
  command.flag("--check", &options->check, "Check FILE, and show the first trials");
  command.option("--restore", &options->restore, "Continue an experiment").named("EXPERIMENT");
  command.option("--extend", &options->extend, "Continue one with what FILE and --set say").named("EXPERIMENT");
  command.flag("--resume-errored", &options->resume_errored, "Of one that goes on: continue failed trials");
  command.flag("--restart-errored", &options->restart_errored, "Of one that goes on: begin failed trials anew");
  command.option("--cluster", &options->cluster, "Run on the nodes of slurm, ray, or a JSON file");
  command.option("--cpus", &options->cpus, "CPUs for trials [all]").at_least(0).named("N");
  command.option("--gpus", &options->gpus, "GPUs for trials [all]").at_least(0).named("N");
  command.footer(
      "  # tune.toml\n"
      "  metric = \"loss\"\n"
      "  mode = \"min\"\n"
      "  num_samples = 20\n"
      "  [space]\n"
      "  lr = \"loguniform(1e-5, 1)\"\n\n"
      "  cadre tune tune.toml -- ./train --lr {lr}\n\n"
      "The program writes a line of JSON for each result to the descriptor\n"
      "CADRE_REPORT_FD: {\"loss\": 0.25}. docs/programs.md has the rest.");
  command.on_call([options] { run(*options); });
}

}  // namespace cadre::cli
