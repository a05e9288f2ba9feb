// Runs a small experiment with Population Based Training, for tests that read its files: experiment_tool <storage
// path>.
#include <cmath>
#include <fstream>
#include <iostream>

#include "cadre/tune.h"

namespace {

using namespace cadre;

void learn(const Config& config) {
  double score = 0;
  std::int64_t step = 0;
  if (const auto checkpoint = tune::get_checkpoint()) std::ifstream(checkpoint->path() / "state") >> step >> score;
  for (;;) {
    ++step;
    score += config.get<double>("lr") * (1 - score) / 10;
    Metrics metrics{{"score", score},
                    {"eval", {{"loss", 1 - score}, {"words", "a \"b\", c"}}},
                    {"big", std::int64_t{1} << 62},
                    {"weights", list(score, 2 * score, -1, step)}};
    if (step >= 7) metrics.set("late", step == 8 ? std::nan("") : score);
    const auto write = [&](const std::filesystem::path& directory) {
      std::ofstream(directory / "state") << step << ' ' << score;
    };
    step % 2 == 0 ? tune::report(metrics, write) : tune::report(metrics);
  }
}

}  // namespace

int main(int argc, char** argv) {
  init(argc, argv, {.num_cpus = 4});
  try {
    const tune::PopulationBasedTraining pbt{
        .time_attr = "training_iteration",
        .metric = tune::maximize("score"),
        .perturbation_interval = 4,
        .hyperparam_mutations = {{"lr", tune::uniform(0.01, 1)}, {"act", {"relu", "tanh"}}}};
    tune::Tuner tuner(fn<learn>,
                      {.param_space = {{"lr", tune::uniform(0.01, 1)}, {"act", "relu"}, {"name", "caf\xc3\xa9"}},
                       .tune_config = {.num_samples = 6, .scheduler = pbt, .seed = 2},
                       .run_config = {.name = "experiment",
                                      .storage_path = argv[1],
                                      .stop = {{"training_iteration", 24}},
                                      .checkpoint_config = {.num_to_keep = 2},
                                      .verbose = 0}});
    return static_cast<int>(tuner.fit().num_errors());
  } catch (const std::exception& error) {
    std::cerr << "experiment_tool: " << error.what() << '\n';
    return 1;
  }
}
