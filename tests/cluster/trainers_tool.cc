// A program that tunes a training run, for trainers_test.py. Each trial trains with two workers, which may be on
// different nodes.
//
//   trainers_tool <storage path> <options as JSON>
//
// The program continues the experiment if it exists. Options, with their defaults: {"trials": 4, "steps": 8,
// "milliseconds": 0, "strategy": "strict_spread", "pbt": false}. Prints the status, the last step and the sum of each
// trial.
#include <cadre/init.h>
#include <cadre/train.h>
#include <cadre/tune.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <string>
#include <thread>

#include "base/json.h"
#include "base/machine.h"
#include "cadre/stored.h"

namespace {

namespace fs = std::filesystem;
using namespace cadre;

struct ToolOptions {
  std::int64_t trials = 4;
  std::int64_t steps = 8;
  std::int64_t milliseconds = 0;  // duration of a step
  std::string strategy = "strict_spread";
  bool pbt = false;
};

constexpr std::int64_t kRanks = 2;

PlacementStrategy strategy_of(const std::string& name) {
  if (name == "pack") return PlacementStrategy::pack;
  if (name == "spread") return PlacementStrategy::spread;
  if (name == "strict_pack") return PlacementStrategy::strict_pack;
  return PlacementStrategy::strict_spread;
}

std::string file_of(std::int64_t rank) { return "rank_" + std::to_string(rank); }

// Adds up the trial's rate times (rank + 1), once for each step. Begins with the sum of this rank's checkpoint file,
// and throws an Error if it cannot read the files of all ranks.
void learn(const Config& config) {
  const train::TrainContext context = train::get_context();
  const std::int64_t rank = context.get_world_rank();
  std::int64_t step = 0;
  double sum = 0;
  if (const auto checkpoint = train::get_checkpoint()) {
    for (std::int64_t other = 0; other < kRanks; ++other) {
      double its_sum = -1;
      std::ifstream file(checkpoint->path() / file_of(other));
      if (!(file >> step >> its_sum))
        throw Error("rank " + std::to_string(rank) + " does not find the file of rank " + std::to_string(other));
      if (other == rank) sum = its_sum;
    }
  }
  std::cout << "rank " << rank << " on " << base::host_name() << " from step " << step << std::endl;
  while (step < config.get<std::int64_t>("steps")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(config.get<std::int64_t>("milliseconds")));
    ++step;
    sum += config.get<double>("rate") * static_cast<double>(rank + 1);
    train::report({{"step", step}, {"sum", sum}, {"rate", config.get<double>("rate")}}, [&](const fs::path& directory) {
      std::ofstream file(directory / file_of(rank));
      file << std::setprecision(17) << step << ' ' << sum << '\n';
    });
  }
}

void trains(const Config& config) {
  train::Trainer(fn<learn>, {.train_loop_config = config,
                             .scaling_config = {.num_workers = kRanks,
                                                .resources_per_worker = Resources{.cpus = 1},
                                                .placement_strategy = strategy_of(config.get<std::string>("strategy"))},
                             .run_config = {.checkpoint_config = {.num_to_keep = 1}}})
      .fit();
}

tune::TuneConfig tune_config(const ToolOptions& options) {
  tune::TuneConfig config{.metric = tune::maximize("sum"), .num_samples = options.trials, .seed = 7};
  if (options.pbt)
    config.scheduler = tune::PopulationBasedTraining{.time_attr = "step",
                                                     .perturbation_interval = 2,
                                                     .hyperparam_mutations = {{"rate", tune::uniform(0.5, 2.0)}},
                                                     .synch = true};
  return config;
}

}  // namespace

int main(int argc, char** argv) {
  init(argc, argv, {.num_cpus = 2});
  ToolOptions options;
  if (argc > 2) from_stored(options, Stored(base::parse_json(argv[2], "the options")));
  const tune::ResultGrid results =
      tune::Tuner(tune::with_resources(fn<trains>, PlacementGroup{.bundles = {{.cpus = 0}, {.cpus = 1}, {.cpus = 1}},
                                                                  .strategy = strategy_of(options.strategy)}),
                  {.param_space = {{"rate", tune::uniform(0.5, 2.0)},
                                   {"steps", options.steps},
                                   {"milliseconds", options.milliseconds},
                                   {"strategy", options.strategy}},
                   .tune_config = tune_config(options),
                   .run_config = {.name = "trials",
                                  .if_exists = IfExists::restore,
                                  .storage_path = argv[1],
                                  .failure_config = {.max_failures = 1},
                                  .verbose = 1}})
          .fit();
  for (const tune::Result& result : results) {
    std::cout << "result " << tune::to_string(result.status) << ' ' << result.metrics.get<std::int64_t>("step") << ' '
              << result.metrics.get<double>("sum") << '\n';
    if (result.error) std::cerr << *result.error << '\n';
  }
}
