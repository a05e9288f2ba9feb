// Runs an experiment of random search with a mixed, conditional search space, for tests of its importances and fronts:
// importance_tool <storage path> <seed>.
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "cadre/tune.h"

namespace {

using namespace cadre;

Metrics evaluate(const Config& config) {
  double loss = std::pow(config.get<double>("x") - 1, 2) / 4 + std::abs(std::log10(config.get<double>("lr")) + 3) / 3 +
                config.get<double>("step") / 5 + config.get<double>("width") / 500;
  const std::string kind = config.get<std::string>("optimizer/kind");
  if (kind == "adam") loss += 0.5;
  if (kind == "sgd") loss += std::abs(config.get<double>("optimizer/momentum") - 0.9);
  return {{"loss", loss}, {"latency", 250 - config.get<double>("width") + 10 * config.get<double>("layers")}};
}

}  // namespace

int main(int argc, char** argv) {
  init(argc, argv, {.num_cpus = 4});
  try {
    const tune::Space sgd{{"kind", "sgd"}, {"momentum", tune::uniform(0, 1)}};
    tune::Tuner tuner(fn<evaluate>,
                      {.param_space = {{"x", tune::uniform(-2, 3)},
                                       {"lr", tune::loguniform(1e-5, 1)},
                                       {"step", tune::quniform(0, 1, 0.25)},
                                       {"layers", tune::randint(1, 7)},
                                       {"width", tune::randint(0, 200)},
                                       {"act", tune::grid_search({"relu", "tanh"})},
                                       {"optimizer", tune::choice({tune::Space{{"kind", "adam"}},
                                                                   tune::Space{{"kind", "adagrad"}}, sgd})}},
                       .tune_config = {.metric = tune::minimize("loss"),
                                       .num_samples = 60,
                                       .seed = std::strtoull(argv[2], nullptr, 10)},
                       .run_config = {.name = "experiment", .storage_path = argv[1], .verbose = 0}});
    return static_cast<int>(tuner.fit().num_errors());
  } catch (const std::exception& error) {
    std::cerr << "importance_tool: " << error.what() << '\n';
    return 1;
  }
}
