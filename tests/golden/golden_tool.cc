// Makes the runs in the archives here, or continues them: golden_tool experiment|training <storage path>. README.md
// says when.
#include <chrono>
#include <fstream>
#include <iostream>
#include <string_view>
#include <thread>

#include "cadre/train.h"
#include "cadre/tune.h"

namespace {

using namespace cadre;

constexpr auto kPublishInterval = std::chrono::milliseconds(20);  // used if the storage path is a URI

// The whole state is in the checkpoints, so that the time of an interruption does not matter.
struct State {
  std::int64_t step = 0;
  double score = 0;
};

State read_state(const Checkpoint& checkpoint) {
  State state;
  std::ifstream(checkpoint.path() / "state") >> state.step >> state.score;
  return state;
}

void write_state(const std::filesystem::path& directory, const State& state) {
  std::ofstream file(directory / "state");
  file.precision(17);
  file << state.step << ' ' << state.score;
}

void take_step(State& state, double lr) {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ++state.step;
  state.score += lr * (1 - state.score) / 50;
}

void learn(const Config& config) {
  State state;
  if (const auto checkpoint = tune::get_checkpoint()) state = read_state(*checkpoint);
  for (;;) {
    take_step(state, config.get<double>("lr"));
    const Metrics metrics{{"score", state.score}, {"nested", {{"words", "a \"b\", \xc3\xa9"}}}};
    tune::report(metrics, [&](const std::filesystem::path& directory) { write_state(directory, state); });
  }
}

// Trains a population that is synchronous, so that its outcome is always the same.
double run_experiment(const std::filesystem::path& storage_path) {
  const std::filesystem::path directory = storage_path / "experiment";
  const tune::PopulationBasedTraining pbt{.time_attr = "training_iteration",
                                          .metric = tune::maximize("score"),
                                          .perturbation_interval = 4,
                                          .hyperparam_mutations = {{"lr", tune::uniform(0.01, 1)}},
                                          .quantile_fraction = 0.5,
                                          .synch = true};
  auto tuner = tune::Tuner::can_restore(directory)
                   ? tune::Tuner::restore(directory)
                   : tune::Tuner(fn<learn>, {.param_space = {{"lr", tune::uniform(0.01, 1)}},
                                             .tune_config = {.num_samples = 3, .scheduler = pbt, .seed = 2},
                                             .run_config = {.name = "experiment",
                                                            .storage_path = storage_path,
                                                            .publish_config = {.interval = kPublishInterval},
                                                            .stop = {{"training_iteration", 24}},
                                                            .checkpoint_config = {.num_to_keep = 2},
                                                            .verbose = 1}});
  double sum = 0;
  for (const tune::Result& result : tuner.fit()) sum += result.metrics.get<double>("score");
  return sum;
}

void train_together(const Config& config) {
  State state;
  if (const auto checkpoint = train::get_checkpoint()) state = read_state(*checkpoint);
  while (state.step < 24) {
    take_step(state, config.get<double>("lr"));
    const auto write = [&](const std::filesystem::path& directory) {
      if (train::get_context().get_world_rank() == 0) write_state(directory, state);
    };
    train::report({{"score", state.score}}, write);
  }
}

double run_training(const std::filesystem::path& storage_path) {
  const std::filesystem::path directory = storage_path / "training";
  auto trainer =
      train::Trainer::can_restore(directory)
          ? train::Trainer::restore(directory)
          : train::Trainer(fn<train_together>, {.train_loop_config = {{"lr", 0.5}},
                                                .scaling_config = {.num_workers = 2},
                                                .run_config = {.name = "training",
                                                               .storage_path = storage_path,
                                                               .publish_config = {.interval = kPublishInterval},
                                                               .checkpoint_config = {.num_to_keep = 2},
                                                               .verbose = 1}});
  return trainer.fit().metrics.get<double>("score");
}

}  // namespace

// Prints the outcome.
int main(int argc, char** argv) {
  init(argc, argv, {.num_cpus = 4});
  try {
    if (argc != 3) throw std::runtime_error("golden_tool experiment|training <storage path>");
    std::cout.precision(17);
    std::cout << (std::string_view(argv[1]) == "training" ? run_training(argv[2]) : run_experiment(argv[2])) << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "golden_tool: " << error.what() << '\n';
    return 1;
  }
}
