// Trials that return at once, each in a new process; and how long a program takes to run one such trial.
#include "cadre/tune.h"
#include "experiment.h"
#include "figures.h"
#include "learner.h"
#include "parts.h"
#include "plain.h"
#include "statistics.h"
#include "workloads.h"

namespace cadre::bench {
namespace {

struct Settings {
  std::int64_t trials = 200;
  std::int64_t slots = 2;
  std::int64_t starts = 5;
  std::filesystem::path storage_path;
};

void return_at_once(const Config&) {}

void measure_trials(const Settings& settings) {
  const Run run =
      run_experiment({.trainable = fn<return_at_once>,
                      .options = {.tune_config = {.num_samples = settings.trials},
                                  .run_config = {.name = "empty_trial", .storage_path = settings.storage_path}},
                      .slots = settings.slots});
  const PlainRun plain = run_plainly([&] { fork_processes(settings.trials, settings.slots, [](std::int64_t) {}); });
  const double ms_per_trial = 1e3 / static_cast<double>(settings.trials);
  const double wall_ms = run.wall_s * ms_per_trial;
  const double cpu_ms = run.usage.cpu_s * ms_per_trial;
  Dict facts = count(run.directory);
  facts.insert(facts.end(), {{"wall_ms_per_trial", wall_ms},
                             {"cpu_ms_per_trial", cpu_ms},
                             {"plain_wall_s", plain.wall_s},
                             {"plain_cpu_s", plain.usage.cpu_s},
                             {"plain_fork_ms_per_trial", plain.wall_s * ms_per_trial},
                             {"ratio", run.wall_s / plain.wall_s}});
  print_line("empty-trial", {{"slots", settings.slots}}, run.wall_s, run.usage.cpu_s, facts,
             {{.name = "an empty trial, wall",
               .value = wall_ms,
               .unit = "ms",
               .budget = Budget::at_most(2),
               .ratio = run.wall_s / plain.wall_s},
              {.name = "an empty trial, CPU of all processes",
               .value = cpu_ms,
               .unit = "ms",
               .budget = Budget::at_most(3),
               .ratio = run.usage.cpu_s / plain.usage.cpu_s}});
}

void measure_starts(const Settings& settings) {
  std::vector<double> to_end_of_trial, to_end_of_program, plain;
  double cpu_s = 0;
  for (std::int64_t i = 0; i < settings.starts; ++i) {
    const double began = now_seconds();
    const std::string name = "one_trial_" + std::to_string(i);
    const Process::Ended ended = Process::execute("one-trial", {settings.storage_path.string(), name}).wait();
    to_end_of_trial.push_back(Config(ended.said).get<double>("ended_at") - began);
    to_end_of_program.push_back(ended.seconds);
    cpu_s += ended.usage.cpu_s;
    plain.push_back(start_plain_program());
  }
  const double ratio = median(to_end_of_trial) / median(plain);
  print_line("empty-trial", {{"trials", 1}, {"slots", 1}, {"starts", settings.starts}}, median(to_end_of_trial),
             cpu_s / static_cast<double>(settings.starts),
             {{"best_s", best(to_end_of_trial)},
              {"median_s", median(to_end_of_trial)},
              {"end_of_program_s", median(to_end_of_program)},
              {"plain_start_s", median(plain)},
              {"ratio", ratio}},
             {{.name = "process start to the end of one empty trial",
               .value = median(to_end_of_trial),
               .unit = "s",
               .budget = Budget::at_most(with_torch() ? 0.6 : 0.1),
               .ratio = ratio}});
}

void measure(const Settings& settings) {
  measure_trials(settings);
  if (settings.starts > 0) measure_starts(settings);
}

}  // namespace

Dict run_one_empty_trial(const Arguments& arguments) {
  cadre::init(arguments.argc, arguments.argv);
  tune::Tuner tuner(fn<return_at_once>,
                    {.run_config = {.name = arguments[1], .storage_path = arguments[0], .verbose = 0}});
  tuner.fit();
  return {{"ended_at", now_seconds()}};
}

void add_empty_trial(cli::Command& program) {
  const auto settings = std::make_shared<Settings>();
  cli::Command workload =
      add_workload(program, "empty-trial", "trials that return at once, each in a new process", settings, measure);
  workload.option("--trials", &settings->trials);
  workload.option("--slots", &settings->slots, "trials at a time");
  workload.option("--starts", &settings->starts, "times that a program is started to run a single trial");
}

}  // namespace cadre::bench
