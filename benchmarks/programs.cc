// Trials of a program that ends at once.
#include "cadre/tune.h"
#include "experiment.h"
#include "figures.h"
#include "plain.h"
#include "workloads.h"

namespace cadre::bench {
namespace {

constexpr const char* kProgram = "true";

struct Settings {
  std::int64_t trials = 1'000;
  std::int64_t slots = 2;
  std::filesystem::path storage_path;
};

void measure(const Settings& settings) {
  const Run run =
      run_experiment({.trainable = tune::Program{.command = {kProgram}},
                      .options = {.tune_config = {.num_samples = settings.trials},
                                  .run_config = {.name = "programs", .storage_path = settings.storage_path}},
                      .slots = settings.slots});
  const PlainRun plain = run_plainly([&] { spawn_processes(settings.trials, settings.slots, kProgram); });
  const double ms_per_trial = 1e3 / static_cast<double>(settings.trials);
  const double beyond_ms = (run.wall_s - plain.wall_s) * ms_per_trial;
  Dict facts = count(run.directory);
  facts.insert(facts.end(), {{"wall_ms_per_trial", run.wall_s * ms_per_trial},
                             {"cpu_ms_per_trial", run.usage.cpu_s * ms_per_trial},
                             {"plain_wall_s", plain.wall_s},
                             {"plain_cpu_s", plain.usage.cpu_s},
                             {"plain_ms_per_start", plain.wall_s * ms_per_trial},
                             {"beyond_ms", beyond_ms},
                             {"ratio", run.wall_s / plain.wall_s}});
  print_line("programs", {{"program", kProgram}, {"slots", settings.slots}}, run.wall_s, run.usage.cpu_s, facts,
             {{.name = "a trial of `true`, beyond the program's own start",
               .value = beyond_ms,
               .unit = "ms",
               .budget = Budget::at_most(3),
               .ratio = run.wall_s / plain.wall_s}});
}

}  // namespace

void add_programs(cli::Command& program) {
  const auto settings = std::make_shared<Settings>();
  cli::Command workload =
      add_workload(program, "programs", "trials of the program `true`, each started anew", settings, measure);
  workload.option("--trials", &settings->trials);
  workload.option("--slots", &settings->slots, "trials at a time");
}

}  // namespace cadre::bench
