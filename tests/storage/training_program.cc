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

// Writes the step of each report that has returned into the file "witness" of its config, until it is killed.
void tells_what_is_published(const Config& config) {
  const fs::path witness = config.get<std::string>("witness");
  std::int64_t step = 0;
  if (const auto checkpoint = train::get_checkpoint()) std::ifstream(checkpoint->path() / "step") >> step;
  for (;;) {
    ++step;
    const auto write = [&](const fs::path& directory) { std::ofstream(directory / "step") << step; };
    train::report({{"step", step}}, write, {.until_published = true});
    std::ofstream(witness.string() + ".new") << step;
    fs::rename(witness.string() + ".new", witness);
  }
}

train::Trainer make_witness(const fs::path& run, const fs::path& witness) {
  const PublishConfig publish{.interval = std::chrono::hours(1)};
  if (train::Trainer::can_restore(run)) return train::Trainer::restore(run, {.publish_config = publish});
  return {fn<tells_what_is_published>,
          {.train_loop_config = {{"witness", witness.string()}},
           .run_config = {.name = run.filename(), .storage_path = run.parent_path(), .publish_config = publish}}};
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

std::vector<std::string> training_arguments(const std::string& run, const fs::path& witness) {
  if (witness.empty()) return {kOption, run};
  return {kOption, run, witness};
}

void run_if_training(int argc, char** argv) {
  if (argc < 3 || std::string(argv[1]) != kOption) return;
  try {
    cadre::init(argc, argv, {.num_cpus = 3});
    (argc > 3 ? make_witness(argv[2], argv[3]) : make_trainer(argv[2])).fit();
    std::exit(0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::exit(1);
  }
}

}  // namespace cadre::storage_tests
