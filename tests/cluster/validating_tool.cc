// A program that trains and validates beside it, for demand_test.py. Training is on nodes of the group "training",
// validation on those of the group "validators":
//
//   validating_tool <storage path> <workers> <steps> <milliseconds of a step> <validates every> <milliseconds of a
//   validation>
//
// continues the run if it is there. `workers` may be a range: 1-2. A file hold_<step> in the storage path holds that
// step back until it is removed, a file hold_validation_<step> the validation of that step. A worker prints the size of
// its group and its host, a validation adds a line to the file "validated" in the storage path: its host, when it began
// and ended in seconds since 1970, and the step.
#include <cadre/init.h>
#include <cadre/train.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>

#include "base/machine.h"

namespace {

using namespace cadre;
namespace fs = std::filesystem;

double seconds_since_1970() {
  using Seconds = std::chrono::duration<double>;
  return Seconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

void wait_while_held(const fs::path& storage, const std::string& name) {
  while (fs::exists(storage / ("hold_" + name))) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

void learn(const Config& config) {
  const auto context = train::get_context();
  std::cout << "rank " << context.get_world_rank() << " of " << context.get_world_size() << " on " << base::host_name()
            << std::endl;
  std::int64_t step = 0;
  if (const auto checkpoint = train::get_checkpoint()) std::ifstream(checkpoint->path() / "step") >> step;
  while (step < config.get<std::int64_t>("steps")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(config.get<std::int64_t>("step_ms")));
    ++step;
    wait_while_held(config.get<std::string>("storage"), std::to_string(step));
    train::ReportOptions options;
    if (step % config.get<std::int64_t>("every") == 0) options.validation = true;
    train::report(
        {{"step", step}, {"at", seconds_since_1970()}},
        [&](const fs::path& directory) { std::ofstream(directory / "step") << step; }, std::move(options));
  }
}

Metrics validate(const Checkpoint& checkpoint, const Config& config) {
  const double begun = seconds_since_1970();
  std::int64_t step = 0;
  std::ifstream(checkpoint.path() / "step") >> step;
  std::this_thread::sleep_for(std::chrono::milliseconds(config.get<std::int64_t>("ms")));
  const fs::path storage = config.get<std::string>("storage");
  wait_while_held(storage, "validation_" + std::to_string(step));
  std::ofstream(storage / "validated", std::ios::app)
      << std::fixed << base::host_name() << ' ' << begun << ' ' << seconds_since_1970() << ' ' << step << std::endl;
  return {{"validated_step", step}};
}

train::WorkerRange to_range(const std::string& text) {
  const auto dash = text.find('-');
  if (dash == std::string::npos) return {std::stoll(text), std::stoll(text)};
  return {std::stoll(text.substr(0, dash)), std::stoll(text.substr(dash + 1))};
}

}  // namespace

int main(int argc, char** argv) {
  init(argc, argv);
  if (argc != 7) return 2;
  const fs::path storage = argv[1];
  try {
    const auto result =
        train::Trainer(fn<learn>,
                       {.train_loop_config = {{"steps", std::atoll(argv[3])},
                                              {"step_ms", std::atoll(argv[4])},
                                              {"every", std::atoll(argv[5])},
                                              {"storage", storage.string()}},
                        .scaling_config = {.num_workers = to_range(argv[2]),
                                           .label_selector = {{"group", "training"}},
                                           .elastic_resize_monitor_interval = std::chrono::seconds(1)},
                        .run_config = {.name = "run",
                                       .if_exists = IfExists::restore,
                                       .storage_path = storage,
                                       .failure_config = {.max_failures = -1},
                                       .verbose = 1},
                        .validation = {.function = fn<validate>,
                                       .config = {{"storage", storage.string()}, {"ms", std::atoll(argv[6])}},
                                       .resources = {.labels = {{"group", "validators"}}}}})
            .fit();
    std::cout << result.metrics.get<std::int64_t>("step") << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "validating_tool: " << error.what() << '\n';
    return 1;
  }
}
