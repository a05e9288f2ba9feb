// Runs an experiment with a searcher, or continues it, for killed_search_test.py: killed_search_tool <folder>
// <searcher> <scheduler> [<stopper>], as JSON. Prints the config, the status and the number of results of each trial,
// and why a stopper has ended the experiment.
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "cadre/stored.h"
#include "cadre/tune.h"

namespace {

using namespace cadre;

void train(const Config& config) {
  const auto optimizer = config.at("optimizer");
  const double penalty = optimizer.is_string() ? 0.5 : std::abs(Config(optimizer).get<double>("beta") - 0.7);
  const std::optional<Checkpoint> checkpoint = tune::get_checkpoint();
  int step = checkpoint ? std::stoi(base::read_file(checkpoint->path() / "step")) : 0;
  while (++step <= 4) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    tune::report(
        {{"loss", std::abs(std::log10(config.get<double>("lr")) + 2) + penalty + 1.0 / step}},
        [&](const std::filesystem::path& directory) { base::write_file(directory / "step", std::to_string(step)); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  cadre::init(argc, argv, {.num_cpus = 2});
  tune::AnySearcher searcher;
  read_stored(searcher, Stored(base::parse_json(argv[2], "the searcher")));
  tune::AnyScheduler scheduler;
  read_stored(scheduler, Stored(base::parse_json(argv[3], "the scheduler")));
  tune::Stop stop;
  if (argc > 4) read_stored(stop.stoppers.emplace_back(), Stored(base::parse_json(argv[4], "the stopper")));
  tune::Tuner tuner(
      tune::with_resources(fn<train>, Resources{.cpus = 1.5}),  // one at a time
      {.param_space = {{"lr", tune::loguniform(1e-5, 1)},
                       {"width", tune::randint(1, 9)},
                       {"optimizer", tune::choice({"sgd", tune::Space{{"beta", tune::uniform(0, 1)}}})}},
       .tune_config = {.metric = tune::minimize("loss"),
                       .num_samples = 40,
                       .searcher = searcher,
                       .scheduler = scheduler,
                       .seed = 3},
       .run_config = {
           .name = "killed", .if_exists = IfExists::restore, .storage_path = argv[1], .stop = stop, .verbose = 0}});
  const tune::ResultGrid results = tuner.fit();
  for (const tune::Result& trial : results)
    std::cout << to_json(trial.config.value()) << " " << to_string(trial.status) << " " << trial.num_results() << "\n";
  if (argc > 4) std::cout << results.summary().stop_reason << "\n";
}
