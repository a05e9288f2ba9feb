// Trains in two workers, one of which fails once, for tests that read the run's files:
//
//   training_run_tool <storage path> [<file>]
//
// With a file all checkpoints are validated, which takes until that file is there.
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <thread>

#include "cadre/train.h"

namespace {

using namespace cadre;
namespace fs = std::filesystem;

// Saves with every third report, so that the second group repeats two steps.
void learn(const Config& config) {
  double loss = 1;
  std::int64_t step = 0;
  if (const auto checkpoint = train::get_checkpoint()) std::ifstream(checkpoint->path() / "state") >> step >> loss;
  std::cout << "rank " << train::get_context().get_world_rank() << " begins after " << step << '\n';
  std::ofstream("where") << "here";
  const fs::path failed = train::get_context().get_storage() / "failed";
  while (step < config.get<std::int64_t>("steps")) {
    ++step;
    loss *= 1 - config.get<double>("lr");
    if (step == 9 && train::get_context().get_world_rank() == 1 && !fs::exists(failed)) {
      std::ofstream(failed) << "once";
      throw std::runtime_error("out of luck");
    }
    Metrics metrics{{"loss", loss},
                    {"eval", {{"accuracy", 1 - loss}, {"words", "a \"b\", c"}}},
                    {"big", std::int64_t{1} << 62},
                    {"weights", list(loss, 2 * loss, -1, step)}};
    if (step >= 7) metrics.set("late", step == 8 ? std::nan("") : loss);
    const auto write = [&](const fs::path& directory) {
      std::ofstream file(directory / "state");
      file.precision(17);
      file << step << ' ' << loss;
    };
    train::ReportOptions options;
    if (config.get<bool>("validates")) options.validation = train::ValidationTask();
    step % 3 == 0 ? train::report(metrics, write, std::move(options)) : train::report(metrics);
  }
}

Metrics validate(const Checkpoint& checkpoint, const Config& config) {
  while (!fs::exists(config.get<std::string>("file"))) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::int64_t step = 0;
  std::ifstream(checkpoint.path() / "state") >> step;
  return {{"score", 10 * step}, {"loss", -step}};
}

}  // namespace

int main(int argc, char** argv) {
  init(argc, argv, {.num_cpus = 2});
  try {
    train::ValidationConfig validation;
    if (argc > 2) validation = {.function = fn<validate>, .config = {{"file", argv[2]}}};
    train::Trainer(fn<learn>,
                   {.train_loop_config = {{"lr", 0.1}, {"steps", 12}, {"name", "caf\xc3\xa9"}, {"validates", argc > 2}},
                    .scaling_config = {.num_workers = 2},
                    .run_config = {.name = "run",
                                   .storage_path = argv[1],
                                   .failure_config = {.max_failures = 1},
                                   .checkpoint_config = {.num_to_keep = 2},
                                   .verbose = 0,
                                   .chdir_to_rank_dir = true},
                    .validation = std::move(validation)})
        .fit();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "training_run_tool: " << error.what() << '\n';
    return 1;
  }
}
