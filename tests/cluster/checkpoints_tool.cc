// A program that reports checkpoints in all ways from four ranks, and validates each, for shared_place_test.py:
//
//   checkpoints_tool <storage path> <steps> <milliseconds of a step> <folder on a disk of the node> [log]
//
// continues the run if it is there. With "log", what ranks print is shown. If the environment variable
// CADRE_TEST_HURRY names a file, no rank begins its last step before that file exists. Prints what the last report
// says, and then of each checkpoint its step, its state and what its validator has read in it.
#include <cadre/init.h>
#include <cadre/object.h>
#include <cadre/train.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace fs = std::filesystem;
using namespace cadre;

constexpr std::int64_t kRanks = 4;

std::string file_of(std::int64_t rank) { return "rank_" + std::to_string(rank); }

std::int64_t read(const fs::path& checkpoint, std::int64_t rank) {
  std::int64_t sum = -1;
  std::ifstream(checkpoint / file_of(rank)) >> sum;
  return sum;
}

// Each rank has a file in each checkpoint.
void report(std::int64_t step, std::int64_t sum, const fs::path& own_disk) {
  const std::int64_t rank = train::get_context().get_world_rank();
  const Metrics metrics{{"step", step}, {"sum", sum}};
  const auto write = [&](const fs::path& directory) { std::ofstream(directory / file_of(rank)) << sum; };
  const auto on_own_disk = [&] {
    fs::path directory = own_disk / (file_of(rank) + "_" + std::to_string(step));
    fs::create_directories(directory);
    write(directory);
    return Checkpoint::from_directory(std::move(directory));
  };
  using Mode = train::CheckpointUploadMode;
  switch (step % 5) {
    case 0:
      return train::report(metrics, write, {.validation = true});
    case 1: {
      CheckpointDirectory made = train::make_checkpoint_directory();
      write(made.path());
      return train::report(metrics, Checkpoint::from_directory(std::move(made)),
                           {.checkpoint_upload_mode = Mode::async, .validation = true});
    }
    case 2:
      return train::report(metrics, on_own_disk(), {.checkpoint_upload_mode = Mode::async, .validation = true});
    case 3:
      return train::report(metrics, on_own_disk(),
                           {.checkpoint_dir_name = "named_" + std::to_string(step), .validation = true});
    default: {
      const fs::path kept = train::get_context().get_storage() / ("kept_" + std::to_string(step));
      fs::create_directories(kept);
      write(kept);
      return train::report(metrics, Checkpoint::from_directory(kept),
                           {.checkpoint_upload_mode = Mode::no_upload, .validation = true});
    }
  }
}

void learn(const Config& config) {
  const std::int64_t rank = train::get_context().get_world_rank();
  std::cout << "begun" << std::endl;
  const Object factors = get_object(config, "factors");
  const std::int64_t factor = factors.as<std::int64_t>()[static_cast<std::size_t>(rank)];
  std::int64_t step = 0;
  std::int64_t sum = 0;
  if (const auto checkpoint = train::get_checkpoint()) {
    std::ifstream(checkpoint->path() / file_of(rank)) >> sum;
    while (step * (step + 1) / 2 * factor < sum) ++step;
  }
  const auto steps = config.get<std::int64_t>("steps");
  const fs::path hurry = config.get<std::string>("hurry");
  while (step < steps) {
    while (step + 1 == steps && !hurry.empty() && !fs::exists(hurry))
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::this_thread::sleep_for(std::chrono::milliseconds(config.get<std::int64_t>("milliseconds")));
    sum += ++step * factor;
    report(step, sum, config.get<std::string>("own_disk"));
  }
  for (const train::ReportedCheckpoint& reported : train::get_all_reported_checkpoints()) {
    if (read(reported.checkpoint.as_directory().path(), rank) !=
        reported.reported_metrics.get<std::int64_t>("sum") * factor)
      throw Error("rank " + std::to_string(rank) + " does not find its file in " + reported.checkpoint.path().string());
  }
}

Metrics validate(const Checkpoint& checkpoint) {
  std::int64_t total = 0;
  for (std::int64_t rank = 0; rank < kRanks; ++rank) total += read(checkpoint.path(), rank);
  return {{"total", total}};
}

}  // namespace

int main(int argc, char** argv) {
  init(argc, argv);
  const char* const hurry = std::getenv("CADRE_TEST_HURRY");
  const ObjectRef factors = put(std::vector<std::int64_t>{1, 2, 3, 4});
  const train::Result result =
      train::Trainer(fn<learn>,
                     {.train_loop_config = {{"steps", std::atoll(argv[2])},
                                            {"milliseconds", std::atoll(argv[3])},
                                            {"own_disk", argv[4]},
                                            {"hurry", hurry == nullptr ? "" : hurry},
                                            {"factors", factors}},
                      .scaling_config = {.num_workers = kRanks, .resources_per_worker = Resources{.cpus = 0.25}},
                      .run_config = {.name = "training",
                                     .if_exists = IfExists::restore,
                                     .storage_path = argv[1],
                                     .failure_config = {.max_failures = 2},
                                     .checkpoint_config = {.num_to_keep = 12},
                                     .logging_config = {.log_to_driver = argv[5] != nullptr},
                                     .verbose = argv[5] != nullptr ? 1 : 0},
                      .validation = {.function = fn<validate>, .resources = Resources{.cpus = 0.25}}})
          .fit();
  if (result.error) {
    std::cerr << *result.error << '\n';
    return 1;
  }
  std::cout << result.metrics.get<std::int64_t>("step") << ' ' << result.metrics.get<std::int64_t>("sum") << '\n';
  for (const train::ReportedCheckpoint& reported : result.best_checkpoints)
    std::cout << reported.metrics.get<std::int64_t>("step") << ' ' << train::to_string(reported.status) << ' '
              << reported.metrics.get<std::int64_t>("total") << '\n';
}
