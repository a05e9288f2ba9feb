// Population Based Training of trials that sleep and write a checkpoint at every step, compared with plain processes
// that do the same.
#include <cstring>
#include <thread>

#include "base/file.h"
#include "cadre/tune.h"
#include "experiment.h"
#include "figures.h"
#include "plain.h"
#include "workloads.h"

namespace cadre::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStateFile = "state";

struct Settings {
  std::int64_t population = 8;
  std::int64_t slots = 8;
  std::int64_t steps = 60;
  std::int64_t step_ms = 5;
  std::int64_t interval = 5;
  std::int64_t bytes = 1'000'000;
  std::int64_t keep = 4;
  fs::path storage_path;
};

double load_score(const fs::path& checkpoint) {
  double score = 0;
  std::memcpy(&score, base::read_file(checkpoint / kStateFile).data(), sizeof score);
  return score;
}

// Reports a score that grows with lr: the trial with the larger lr is the better one.
void sleep_and_save(const Config& config) {
  const auto lr = config.get<double>("lr");
  double score = 0;
  std::string state = random_bytes(std::max(config.get<std::int64_t>("bytes"), std::int64_t{sizeof score}));
  if (const auto checkpoint = tune::get_checkpoint()) score = load_score(checkpoint->path());
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(config.get<std::int64_t>("step_ms")));
    score += lr;
    std::memcpy(state.data(), &score, sizeof score);  // the score, then filler bytes in place of a model
    tune::report({{"score", score}}, [&](const fs::path& directory) { write_file(directory / kStateFile, state); });
  }
}

void run_plain_processes(const Settings& settings) {
  fork_processes(settings.population, settings.slots, [&](std::int64_t number) {
    const std::string state = random_bytes(settings.bytes);
    PlainCheckpoints checkpoints(settings.storage_path / "plain" / std::to_string(number), settings.keep);
    for (std::int64_t step = 0; step < settings.steps; ++step) {
      std::this_thread::sleep_for(std::chrono::milliseconds(settings.step_ms));
      checkpoints.write(state);
    }
  });
}

tune::TunerOptions options_of(const Settings& settings) {
  const tune::PopulationBasedTraining pbt{.time_attr = "training_iteration",
                                          .metric = tune::maximize("score"),
                                          .perturbation_interval = static_cast<double>(settings.interval),
                                          .hyperparam_mutations = {{"lr", tune::uniform(0.001, 1)}}};
  return {.param_space = {{"lr", tune::uniform(0.001, 1)}, {"step_ms", settings.step_ms}, {"bytes", settings.bytes}},
          .tune_config = {.num_samples = settings.population, .scheduler = pbt},
          .run_config = {.name = "pbt",
                         .storage_path = settings.storage_path,
                         .stop = {{"training_iteration", static_cast<double>(settings.steps)}},
                         .checkpoint_config = {.num_to_keep = settings.keep}}};
}

void measure(const Settings& settings) {
  const Run run =
      run_experiment({.trainable = fn<sleep_and_save>, .options = options_of(settings), .slots = settings.slots});
  const PlainRun plain = run_plainly([&] { run_plain_processes(settings); });
  const double ratio = run.wall_s / plain.wall_s;
  Dict facts = count(run.directory);
  const auto errors = Config(facts).get<double>("errors");
  facts.insert(facts.end(), {{"written_bytes", run.usage.written_bytes},
                             {"plain_wall_s", plain.wall_s},
                             {"plain_cpu_s", plain.usage.cpu_s},
                             {"plain_written_bytes", plain.usage.written_bytes},
                             {"ratio", ratio}});
  print_line("pbt",
             {{"population", settings.population},
              {"slots", settings.slots},
              {"steps", settings.steps},
              {"step_ms", settings.step_ms},
              {"interval", settings.interval},
              {"bytes", settings.bytes},
              {"keep", settings.keep}},
             run.wall_s, run.usage.cpu_s, facts,
             {{.name = "PBT, beside plain processes", .value = ratio, .unit = "x", .budget = Budget::at_most(1.3)},
              {.name = "PBT, trials in error", .value = errors, .unit = "", .budget = Budget::at_most(0)}});
}

}  // namespace

void add_pbt(cli::Command& program) {
  const auto settings = std::make_shared<Settings>();
  cli::Command workload =
      add_workload(program, "pbt", "a population that sleeps, and saves itself at every step", settings, measure);
  workload.option("--population", &settings->population, "trials");
  workload.option("--slots", &settings->slots, "trials at a time");
  workload.option("--steps", &settings->steps, "of each trial");
  workload.option("--step-ms", &settings->step_ms, "how long a step sleeps");
  workload.option("--interval", &settings->interval, "steps between two perturbations");
  workload.option("--bytes", &settings->bytes, "of a checkpoint");
  workload.option("--keep", &settings->keep, "checkpoints of a trial: CheckpointConfig::num_to_keep");
}

}  // namespace cadre::bench
