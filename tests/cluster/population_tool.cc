// A program that tunes, for nodes_test.py. Each trial counts its iterations, and takes a while for each:
//
//   population_tool <storage path> <trials> <iterations> <milliseconds of an iteration> [<checkpoint every>]
//
// continues the experiment if it is there. Prints, as a line of JSON for each trial, the last value. A trial prints the
// time at which it has begun, in seconds since 1970. If the environment variable CADRE_TEST_HURRY names a file, no
// trial reports its last iteration before that file exists, and iterations take no time from then on.
#include <cadre/init.h>
#include <cadre/tune.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>

#include "base/machine.h"

namespace {

namespace tune = cadre::tune;
using cadre::fn;

void count(const cadre::Config& config, const cadre::Config& parameters) {
  using Seconds = std::chrono::duration<double>;
  std::cout << std::fixed << "begun " << Seconds(std::chrono::system_clock::now().time_since_epoch()) / Seconds(1)
            << std::endl;
  const auto every = parameters.get<std::int64_t>("every");
  const auto iterations = parameters.get<std::int64_t>("iterations");
  const std::filesystem::path hurry = parameters.get<std::string>("hurry");
  std::int64_t done = 0;
  double value = 0;
  if (const auto checkpoint = tune::get_checkpoint()) std::ifstream(checkpoint->path() / "state") >> done >> value;
  while (true) {
    if (!std::filesystem::exists(hurry))
      std::this_thread::sleep_for(std::chrono::milliseconds(parameters.get<std::int64_t>("milliseconds")));
    ++done;
    while (done == iterations && !hurry.empty() && !std::filesystem::exists(hurry))
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    value += config.get<double>("step");
    const cadre::Metrics metrics{{"value", value}, {"host", cadre::base::host_name()}, {"done", done}};
    if (done % every != 0) {
      tune::report(metrics);
      continue;
    }
    tune::report(metrics, [&](const std::filesystem::path& directory) {
      std::ofstream file(directory / "state");
      file.precision(17);
      file << done << ' ' << value;
    });
  }
}

tune::Tuner make_tuner(char** argv) {
  const std::filesystem::path storage = argv[1];
  if (tune::Tuner::can_restore(storage / "population")) return tune::Tuner::restore(storage / "population");
  const auto number = [&](int i, std::int64_t otherwise) {
    return argv[i] == nullptr ? otherwise : std::atoll(argv[i]);
  };
  const char* hurry = std::getenv("CADRE_TEST_HURRY");
  return {tune::with_parameters(fn<count>, {{"milliseconds", number(4, 0)},
                                            {"every", argv[4] == nullptr ? 1 : number(5, 1)},
                                            {"iterations", number(3, 1)},
                                            {"hurry", hurry == nullptr ? "" : hurry}}),
          {.param_space = {{"step", tune::uniform(0, 1)}},
           .tune_config = {.metric = tune::maximize("value"),
                           .num_samples = number(2, 1),
                           .scheduler =
                               tune::PopulationBasedTraining{.time_attr = "training_iteration",
                                                             .perturbation_interval = 5,
                                                             .hyperparam_mutations = {{"step", tune::uniform(0, 1)}},
                                                             .synch = true},
                           .seed = 7},
           .run_config = {.name = "population",
                          .storage_path = storage,
                          .stop = {{"training_iteration", number(3, 1)}},
                          .verbose = 0}}};
}

}  // namespace

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  const tune::ResultGrid results = make_tuner(argv).fit();
  for (const tune::Result& result : results)
    std::cout << cadre::to_json(cadre::Dict{{"trial", result.trial_id},
                                            {"error", result.error.value_or("")},
                                            {"value", result.metrics.get<double>("value")},
                                            {"done", result.metrics.get<std::int64_t>("done")},
                                            {"host", result.metrics.get<std::string>("host")}})
              << '\n';
  return results.num_errors() == 0 ? 0 : 1;
}
