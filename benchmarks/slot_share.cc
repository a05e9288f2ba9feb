// Population Based Training with more trials than slots: the share of the slots' time that trials spend in their own
// code.
#include "cadre/tune.h"
#include "experiment.h"
#include "figures.h"
#include "learner.h"
#include "plain.h"
#include "workloads.h"

namespace cadre::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStateFile = "checkpoint.pt";

struct Settings {
  std::int64_t trials = 4;
  std::int64_t slots = 2;
  std::int64_t steps = 50;
  std::int64_t step_ms = 16;
  std::int64_t interval = 5;
  fs::path storage_path;
};

// Reports in each result the time since the previous report returned, or since the function began.
void train_in_steps(const Config& config) {
  Stopwatch own_code;
  const auto lr = config.get<double>("lr");
  const std::chrono::milliseconds step_time(config.get<std::int64_t>("step_ms"));
  const auto interval = config.get<std::int64_t>("interval");
  Learner learner(lr);
  if (const auto checkpoint = tune::get_checkpoint()) learner.load(checkpoint->path() / kStateFile);
  for (std::int64_t step = 1;; ++step) {
    learner.train(step_time);
    const Metrics metrics{{"score", lr * static_cast<double>(step)}, {"own_code_s", own_code.seconds()}};
    if (step % interval != 0) {
      tune::report(metrics);
    } else {
      tune::report(metrics, [&](const fs::path& directory) { learner.save(directory / kStateFile); });
    }
    own_code = Stopwatch();
  }
}

void train_plainly(const Settings& settings) {
  fork_processes(settings.trials, settings.slots, [&](std::int64_t) {
    Learner learner(0.1);
    for (std::int64_t step = 0; step < settings.steps; ++step)
      learner.train(std::chrono::milliseconds(settings.step_ms));
  });
}

tune::TunerOptions options_of(const Settings& settings) {
  const tune::PopulationBasedTraining pbt{.time_attr = "training_iteration",
                                          .metric = tune::maximize("score"),
                                          .perturbation_interval = static_cast<double>(settings.interval),
                                          .hyperparam_mutations = {{"lr", tune::uniform(0.0001, 0.1)}}};
  return {.param_space = {{"lr", tune::uniform(0.0001, 0.1)},
                          {"step_ms", settings.step_ms},
                          {"interval", settings.interval}},
          .tune_config = {.num_samples = settings.trials, .scheduler = pbt},
          .run_config = {.name = "slot_share",
                         .storage_path = settings.storage_path,
                         .stop = {{"training_iteration", static_cast<double>(settings.steps)}},
                         .checkpoint_config = {.num_to_keep = 4}}};
}

double own_code_s(const fs::path& experiment) {
  double sum = 0;
  tune::ResultGrid::from_directory(experiment)
      .for_each_result(
          [&](const tune::Result&, std::size_t, const Metrics& metrics) { sum += metrics.get<double>("own_code_s"); });
  return sum;
}

void measure(const Settings& settings) {
  const Run run =
      run_experiment({.trainable = fn<train_in_steps>, .options = options_of(settings), .slots = settings.slots});
  const PlainRun plain = run_plainly([&] { train_plainly(settings); });
  const double own_s = own_code_s(run.directory);
  const double share = own_s / (static_cast<double>(settings.slots) * run.wall_s);
  const double ratio = run.wall_s / plain.wall_s;
  Dict facts = count(run.directory);
  facts.insert(facts.end(), {{"own_code_s", own_s},
                             {"share", share},
                             {"plain_wall_s", plain.wall_s},
                             {"plain_cpu_s", plain.usage.cpu_s},
                             {"ratio", ratio}});
  print_line("slot-share",
             {{"slots", settings.slots},
              {"steps", settings.steps},
              {"step_ms", settings.step_ms},
              {"interval", settings.interval}},
             run.wall_s, run.usage.cpu_s, facts,
             {{.name = "PBT, share of slot time in user code",
               .value = share,
               .unit = "",
               .budget = Budget::at_least(0.9),
               .ratio = ratio}});
}

}  // namespace

void add_slot_share(cli::Command& program) {
  const auto settings = std::make_shared<Settings>();
  cli::Command workload = add_workload(program, "slot-share",
                                       "how much of the slots' time trials have for their own code", settings, measure);
  workload.option("--trials", &settings->trials);
  workload.option("--slots", &settings->slots, "trials at a time");
  workload.option("--steps", &settings->steps, "of each trial");
  workload.option("--step-ms", &settings->step_ms, "CPU time of a step");
  workload.option("--interval", &settings->interval, "steps between two perturbations");
}

}  // namespace cadre::bench
