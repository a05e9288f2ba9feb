#include "training_program.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "cadre/train.h"

namespace cadre::storage_tests {
namespace {

namespace fs = std::filesystem;
constexpr const char* kOption = "--train";

// Trains; every rank has a file in each checkpoint and continues from it.
void add_up(const Config&) {
  const std::string file = "rank_" + std::to_string(train::get_context().get_world_rank());
  std::int64_t step = 0;
  std::int64_t sum = 0;
  if (const auto checkpoint = train::get_checkpoint()) std::ifstream(checkpoint->path() / file) >> step >> sum;
  while (step < kTrainingSteps) {
    sum += ++step;
    const auto write = [&](const fs::path& directory) { std::ofstream(directory / file) << step << ' ' << sum; };
    train::report({{"sum", sum}}, write, {.validation = step % kValidationInterval == 0});
  }
}

// Validates more slowly than the ranks report the next checkpoint.
Metrics adds_up_again(const Checkpoint& checkpoint) {
  std::int64_t step = 0;
  std::int64_t sum = 0;
  std::ifstream(checkpoint.path() / "rank_1") >> step >> sum;
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return {{"is_right", sum == step * (step + 1) / 2}, {"validated_step", step}};
}

train::Trainer make_trainer(const fs::path& run) {
  const PublishConfig publish{.interval = std::chrono::milliseconds(50)};
  if (train::Trainer::can_restore(run)) return train::Trainer::restore(run, {.publish_config = publish});
  return {fn<add_up>,
          {.scaling_config = {.num_workers = 2},
           .run_config = {.name = run.filename(),
                          .storage_path = run.parent_path(),
                          .publish_config = publish,
                          .checkpoint_config = {.num_to_keep = 3},
                          .verbose = 1},
           .validation = {.function = fn<adds_up_again>}}};
}

}  // namespace

std::vector<std::string> training_arguments(const std::string& run) { return {kOption, run}; }

void run_if_training(int argc, char** argv) {
  if (argc < 3 || std::string(argv[1]) != kOption) return;
  try {
    cadre::init(argc, argv, {.num_cpus = 3});
    make_trainer(argv[2]).fit();
    std::exit(0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::exit(1);
  }
}

}  // namespace cadre::storage_tests
