// A project outside of Cadre: trains the population of the paper's figure 2 and prints its outcome.
//
//   train <storage path>
#include <cadre/tune.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>

using namespace cadre;

struct Hyperparameters {
  double a = 0;
  double b = 0;
};

void climb(const Hyperparameters& config) {
  double x = 0.9, y = 0.9;
  std::int64_t step = 1;
  if (auto checkpoint = tune::get_checkpoint()) {
    std::ifstream(checkpoint->path() / "weights") >> step >> x >> y;
    ++step;
  }
  for (;; ++step) {
    x -= 0.02 * config.a * x;
    y -= 0.02 * config.b * y;
    tune::report({{"Q", 1.2 - x * x - y * y}}, [&](const std::filesystem::path& directory) {
      std::ofstream(directory / "weights") << step << ' ' << x << ' ' << y;
    });
  }
}

int main(int argc, char** argv) {
  cadre::init(argc, argv, {.num_cpus = 2});
  const tune::PopulationBasedTraining pbt{
      .time_attr = "training_iteration",
      .perturbation_interval = 10,
      .hyperparam_mutations = {{"a", tune::uniform(0, 1)}, {"b", tune::uniform(0, 1)}},
      .synch = true};
  tune::Tuner tuner(
      fn<climb>,
      {.param_space = {tune::field<&Hyperparameters::a>(tune::uniform(0, 0.2)),
                       tune::field<&Hyperparameters::b>(tune::uniform(0, 0.2))},
       .tune_config = {.metric = tune::maximize("Q"), .num_samples = 4, .scheduler = pbt},
       .run_config = {.name = "climb", .storage_path = argv[1], .stop = {{"training_iteration", 50}}, .verbose = 0}});
  const tune::ResultGrid results = tuner.fit();
  std::size_t exploits = 0;
  for (const tune::Result& trial : results) exploits += trial.exploits.size();
  std::cout << "trials " << results.size() << "\nerrors " << results.num_errors() << "\nexploits " << exploits
            << "\nbest " << results.get_best_result().metrics.get<double>("Q") << '\n';
}
