// The time from the start of the program until a killed experiment continues.
#include <fcntl.h>

#include <fstream>

#include "base/file.h"
#include "base/json.h"
#include "base/system_error.h"
#include "cadre/tune.h"
#include "experiment.h"
#include "figures.h"
#include "gate.h"
#include "learner.h"
#include "parts.h"
#include "plain.h"
#include "simulated_experiment.h"
#include "statistics.h"
#include "store/experiment_reader.h"
#include "workloads.h"

namespace cadre::bench {
namespace {

namespace fs = std::filesystem;

struct Settings {
  std::int64_t trials = 4;
  std::int64_t steps = 60;
  std::int64_t kills = 5;
  std::vector<std::int64_t> finished = {20'000};
  fs::path storage_path;
};

// ---- Trainables

// Records when a trial's first line ran, for seconds_to_first_line().
void note_first_line(const fs::path& file) {
  std::string line;
  base::append_python_float(line, now_seconds());
  const base::FileDescriptor lines(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!lines) base::throw_storage_error("open", file);
  base::write_all(lines.get(), line + "\n", file);
}

// Counts its steps, each with a checkpoint. At every `gate_interval`th step it arrives at the gate, to be killed there.
void count_steps(const Config& config) {
  note_first_line(config.get<std::string>("first_lines"));
  std::int64_t step = 0;
  if (const auto checkpoint = tune::get_checkpoint()) std::ifstream(checkpoint->path() / "step") >> step;
  const auto steps = config.get<std::int64_t>("steps");
  const auto gate_interval = config.get<std::int64_t>("gate_interval");
  const auto last_gate = gate_interval * config.get<std::int64_t>("kills");
  while (++step <= steps) {
    tune::report({{"step", step}},
                 [&](const fs::path& directory) { base::replace_file(directory / "step", std::to_string(step)); });
    if (step % gate_interval == 0 && step <= last_gate) pass_gate(config.get<std::string>("gate"));
  }
}

void note_that_it_runs(const Config& config) { note_first_line(config.get<std::string>("first_lines")); }

// ---- Measurements

// Returns the seconds from `began` to the earliest first line of a trial after it.
double seconds_to_first_line(const fs::path& file, double began) {
  std::ifstream lines(file);
  double found = 0;
  for (double time = 0; lines >> time;) {
    if (time >= began && (found == 0 || time < found)) found = time;
  }
  if (found == 0) throw Error("no trial has run");
  return found - began;
}

double plain_start_s() {
  std::vector<double> starts;
  for (int i = 0; i < 5; ++i) starts.push_back(start_plain_program());
  return median(starts);
}

std::vector<std::string> restore_arguments(const fs::path& experiment, std::int64_t slots) {
  return {experiment.string(), std::to_string(slots)};
}

// Returns the number of repeated results: steps that had been acknowledged before.
std::int64_t count_repeated_results(const fs::path& experiment) {
  std::int64_t repeated = 0;
  store::ExperimentReader(experiment, store::ExperimentReader::Check::rows)
      .visit({.result = [&](const store::ResultRow& row) { repeated += row.repeated ? 1 : 0; },
              .event = [](const store::EventRow&) {},
              .decision = [](const store::DecisionRow&) {}});
  return repeated;
}

void measure_kills(const Settings& settings) {
  const Gate gate(settings.storage_path / "gate");
  const fs::path first_lines = settings.storage_path / "first_lines";
  const fs::path experiment = settings.storage_path / "restart";
  const std::int64_t gate_interval = settings.steps / (settings.kills + 1);
  std::vector<double> restarts;
  double wall_s = 0;
  double cpu_s = 0;
  const auto kill_at_gate = [&](Process& process) {
    gate.await(settings.trials, process);
    process.kill();
    return process.wait(Process::End::killed);
  };
  {
    Process first = Process::fork([&] {
      init_with_slots(settings.trials);
      tune::Tuner(fn<count_steps>, {.param_space = {{"steps", settings.steps},
                                                    {"gate_interval", gate_interval},
                                                    {"kills", settings.kills},
                                                    {"gate", gate.path().string()},
                                                    {"first_lines", first_lines.string()}},
                                    .tune_config = {.num_samples = settings.trials},
                                    .run_config = {.name = "restart",
                                                   .storage_path = settings.storage_path,
                                                   .checkpoint_config = {.num_to_keep = 1},
                                                   .verbose = 0}})
          .fit();
      return Dict{};
    });
    const Process::Ended ended = kill_at_gate(first);
    wall_s += ended.seconds;
    cpu_s += ended.usage.cpu_s;
  }
  for (std::int64_t kill = 1; kill <= settings.kills; ++kill) {
    const double began = now_seconds();
    Process process = Process::execute("restore", restore_arguments(experiment, settings.trials));
    const Process::Ended ended = kill < settings.kills ? kill_at_gate(process) : process.wait();
    restarts.push_back(seconds_to_first_line(first_lines, began));
    wall_s += ended.seconds;
    cpu_s += ended.usage.cpu_s;
  }
  const double plain = plain_start_s();
  const double ratio = median(restarts) / plain;
  Dict facts = count(experiment);
  facts.insert(facts.end(), {{"repeated_results", count_repeated_results(experiment)},
                             {"best_s", best(restarts)},
                             {"median_s", median(restarts)},
                             {"plain_start_s", plain},
                             {"ratio", ratio}});
  print_line("restart", {{"steps", settings.steps}, {"kills", settings.kills}}, wall_s, cpu_s, facts,
             {{.name = "restart after kill -9 to the first trial running",
               .value = median(restarts),
               .unit = "s",
               .budget = Budget::at_most(with_torch() ? 0.6 : 0.2),
               .ratio = ratio}});
}

std::optional<Budget> budget_of(std::int64_t finished) {
  if (finished <= 20'000) return Budget::at_most(0.5);
  if (finished <= 100'000) return Budget::at_most(2);
  return std::nullopt;
}

// Measures an experiment whose process was killed when all but two trials had finished.
void measure_finished(const Settings& settings, std::int64_t finished) {
  constexpr std::int64_t unfinished = 2;
  const std::string name = "restart_" + std::to_string(finished);
  const fs::path first_lines = settings.storage_path / (name + "_first_lines");
  Process before = Process::fork([&] {
    run_simulated_experiment({.trainable = fn<note_that_it_runs>,
                              .options = {.param_space = {{"first_lines", first_lines.string()}},
                                          .tune_config = {.num_samples = finished + unfinished},
                                          .run_config = {.name = name, .storage_path = settings.storage_path}},
                              .slots = unfinished,
                              .unfinished = unfinished});
    return Dict{};
  });
  before.wait(Process::End::killed);
  const double began = now_seconds();
  const fs::path experiment = settings.storage_path / name;
  const Process::Ended ended = Process::execute("restore", restore_arguments(experiment, unfinished)).wait();
  const double restart = seconds_to_first_line(first_lines, began);
  const double plain = plain_start_s();
  Dict facts = count(experiment);
  facts.insert(facts.end(),
               {{"finished", finished}, {"restart_s", restart}, {"plain_start_s", plain}, {"ratio", restart / plain}});
  print_line("restart", {}, ended.seconds, ended.usage.cpu_s, facts,
             {{.name = "restart with " + std::to_string(finished) + " finished trials",
               .value = restart,
               .unit = "s",
               .budget = budget_of(finished),
               .ratio = restart / plain}});
}

void measure(const Settings& settings) {
  if (settings.steps <= settings.kills) throw Error("--steps must be more than --kills");
  measure_kills(settings);
  for (const std::int64_t finished : settings.finished) {
    if (finished > 0) measure_finished(settings, finished);
  }
}

}  // namespace

Dict restore_experiment(const Arguments& arguments) {
  cadre::init(arguments.argc, arguments.argv, {.num_cpus = std::stod(arguments[1])});
  tune::Tuner::restore(arguments[0]).fit();
  return {};
}

void add_restart(cli::Command& program) {
  const auto settings = std::make_shared<Settings>();
  cli::Command workload = add_workload(
      program, "restart", "from kill -9 and a new start of the program to the first trial running", settings, measure);
  workload.option("--trials", &settings->trials, "all at a time");
  workload.option("--steps", &settings->steps, "of each trial, with a checkpoint each; more than --kills");
  workload.option("--kills", &settings->kills, "times that the experiment is killed").at_least(1);
  workload
      .option("--finished", &settings->finished,
              "sizes of experiments that are killed when all trials but two have finished; 0: none")
      .separated_by(',');
}

}  // namespace cadre::bench
