// The cost of a trial in experiments of different sizes.
#include "cadre/tune.h"
#include "experiment.h"
#include "figures.h"
#include "plain.h"
#include "simulated_experiment.h"
#include "statistics.h"
#include "workloads.h"

namespace cadre::bench {
namespace {

constexpr std::int64_t most_real_trials = 20'000;
// Sizes of the reference experiments that larger ones are compared with.
constexpr std::int64_t real_reference = 100;
constexpr std::int64_t simulated_reference = 2'000;
// Runs of the reference, which takes only tenths of a second.
constexpr int reference_runs = 5;

struct Settings {
  std::vector<std::int64_t> trials = {100, 1'000, 20'000};
  std::int64_t slots = 2;
  std::filesystem::path storage_path;
};

void return_from_one_of_many(const Config&) {}

struct Cost {
  double wall_s = 0;
  double cpu_s = 0;
  std::filesystem::path directory;
};

tune::TunerOptions options_of(const Settings& settings, const std::string& name, std::int64_t trials) {
  return {.tune_config = {.num_samples = trials}, .run_config = {.name = name, .storage_path = settings.storage_path}};
}

Cost run_real(const Settings& settings, const std::string& name, std::int64_t trials) {
  const Run run = run_experiment({.trainable = fn<return_from_one_of_many>,
                                  .options = options_of(settings, name, trials),
                                  .slots = settings.slots});
  return {run.wall_s, run.usage.cpu_s, run.directory};
}

Cost run_simulated(const Settings& settings, const std::string& name, std::int64_t trials) {
  Process process = Process::fork([&] {
    return Dict{{"wall_s", run_simulated_experiment({.trainable = fn<return_from_one_of_many>,
                                                     .options = options_of(settings, name, trials),
                                                     .slots = settings.slots})}};
  });
  const Process::Ended ended = process.wait();
  return {Config(ended.said).get<double>("wall_s"), ended.usage.cpu_s, settings.storage_path / name};
}

using RunTrials = Cost (*)(const Settings&, const std::string&, std::int64_t);

// The cost of one trial of many, in seconds.
struct CostOfOne {
  double wall_s = 0;
  double cpu_s = 0;
};

CostOfOne cost_of_one(const Cost& cost, std::int64_t trials) {
  return {cost.wall_s / static_cast<double>(trials), cost.cpu_s / static_cast<double>(trials)};
}

CostOfOne cost_in_reference(const Settings& settings, const std::string& kind, RunTrials run, std::int64_t trials) {
  std::vector<double> wall, cpu;
  for (int i = 0; i < reference_runs; ++i) {
    const std::string name = kind + "_" + std::to_string(trials) + "_" + std::to_string(i);
    const CostOfOne one = cost_of_one(run(settings, name, trials), trials);
    wall.push_back(one.wall_s);
    cpu.push_back(one.cpu_s);
  }
  return {median(wall), median(cpu)};
}

void print(const Settings& settings, const std::string& kind, std::int64_t trials, std::int64_t reference,
           const CostOfOne& reference_cost, const Cost& cost, const Dict& more) {
  const CostOfOne one = cost_of_one(cost, trials);
  const double growth = one.wall_s / reference_cost.wall_s;
  Dict facts = count(cost.directory);
  facts.insert(facts.end(), {{"wall_ms_per_trial", one.wall_s * 1e3},
                             {"cpu_ms_per_trial", one.cpu_s * 1e3},
                             {"reference_trials", reference},
                             {"reference_wall_ms_per_trial", reference_cost.wall_s * 1e3},
                             {"reference_cpu_ms_per_trial", reference_cost.cpu_s * 1e3},
                             {"growth", growth},
                             {"cpu_growth", one.cpu_s / reference_cost.cpu_s}});
  facts.insert(facts.end(), more.begin(), more.end());
  const std::string counts = std::to_string(trials) + (kind == "simulated" ? " simulated" : "") + " trials";
  print_line("trials", {{"engine", kind}, {"slots", settings.slots}}, cost.wall_s, cost.cpu_s, facts,
             {{.name = counts + ", cost of each beside " + std::to_string(reference),
               .value = growth,
               .unit = "x",
               .budget = Budget::at_most(1.2)},
              {.name = counts + ", wall of each", .value = one.wall_s * 1e3, .unit = "ms"}});
}

void measure_real(const Settings& settings, const std::vector<std::int64_t>& sizes) {
  if (sizes.empty()) return;
  const CostOfOne reference = cost_in_reference(settings, "local", run_real, real_reference);
  for (const std::int64_t trials : sizes) {
    const Cost cost = run_real(settings, "local_" + std::to_string(trials), trials);
    const PlainRun plain = run_plainly([&] { fork_processes(trials, settings.slots, [](std::int64_t) {}); });
    print(settings, "local", trials, real_reference, reference, cost,
          {{"plain_wall_s", plain.wall_s}, {"plain_cpu_s", plain.usage.cpu_s}, {"ratio", cost.wall_s / plain.wall_s}});
  }
}

void measure_simulated(const Settings& settings, const std::vector<std::int64_t>& sizes) {
  if (sizes.empty()) return;
  const CostOfOne reference = cost_in_reference(settings, "simulated", run_simulated, simulated_reference);
  for (const std::int64_t trials : sizes) {
    const Cost cost = run_simulated(settings, "simulated_" + std::to_string(trials), trials);
    print(settings, "simulated", trials, simulated_reference, reference, cost, {});
  }
}

void measure(const Settings& settings) {
  std::vector<std::int64_t> real, simulated;
  for (const std::int64_t trials : settings.trials) (trials > most_real_trials ? simulated : real).push_back(trials);
  measure_real(settings, real);
  measure_simulated(settings, simulated);
}

}  // namespace

void add_trials(cli::Command& program) {
  const auto settings = std::make_shared<Settings>();
  cli::Command workload =
      add_workload(program, "trials", "what a trial costs in experiments of different sizes", settings, measure);
  workload
      .option("--trials", &settings->trials,
              "sizes of experiments; more than 20000 trials are simulated: without processes, with the store "
              "and all files")
      .separated_by(',');
  workload.option("--slots", &settings->slots, "trials at a time");
}

}  // namespace cadre::bench
