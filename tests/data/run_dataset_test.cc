// Datasets of training runs: each rank's share, and its position after an interruption.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "cadre/data.h"
#include "cadre/train.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::data {
namespace {

namespace fs = std::filesystem;
using test_support::message_of;
using test_support::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kRows = 200;
constexpr std::int64_t kBatch = 10;

fs::path numbers_in(const fs::path& folder) {
  range(kRows).write_parquet(folder / "numbers", {.max_rows_per_file = 70, .rows_per_row_group = 20});
  return folder / "numbers";
}

train::TrainerOptions options_of(const fs::path& storage, std::int64_t workers, Config config = {}) {
  return {.train_loop_config = std::move(config),
          .scaling_config = {.num_workers = workers, .resources_per_worker = Resources{.cpus = 0.01}},
          .run_config = {.name = "run", .storage_path = storage, .failure_config = {.max_failures = 1}, .verbose = 0},
          .datasets = {{"numbers", read_parquet(numbers_in(storage))}}};
}

// Writes every row that it gets, one per line, to a file of the rank. Fails once in the middle of the second epoch,
// after a checkpoint: rows since that checkpoint do not count.
void reads_two_epochs(const Config& config) {
  const train::TrainContext context = train::get_context();
  const std::string rank = std::to_string(context.get_world_rank());
  const bool fails = config.get<bool>("fails");
  Shard shard = get_dataset_shard("numbers", {.equal = config.get<bool>("equal"), .shuffle = true, .seed = 7});
  std::vector<std::int64_t> seen;
  if (const auto checkpoint = train::get_checkpoint()) {
    std::ifstream file(checkpoint->path() / ("seen_" + rank));
    for (std::int64_t row = 0; file >> row;) seen.push_back(row);
  }
  std::int64_t batches = 0;
  for (std::uint64_t epoch = shard.epoch(); epoch < 2; ++epoch) {
    if (epoch != shard.epoch()) shard.set_epoch(epoch);
    for (const Batch& batch : shard.iter_batches({.batch_size = kBatch, .prefetch_batches = 2})) {
      for (const std::int64_t id : batch.values<std::int64_t>("id"))
        seen.push_back(static_cast<std::int64_t>(epoch) * 1000 + id);
      const fs::path failed = context.get_storage() / "failed";
      if (fails && epoch == 1 && ++batches == 5 && !fs::exists(failed)) {
        train::barrier();
        if (context.get_world_rank() == 0) std::ofstream(failed) << "once";
        throw std::runtime_error("out of luck");
      }
      train::report({{"rows", static_cast<std::int64_t>(seen.size())}}, [&](const fs::path& directory) {
        std::ofstream file(directory / ("seen_" + rank));
        for (const std::int64_t row : seen) file << row << "\n";
      });
    }
  }
  std::ofstream file(context.get_storage() / ("rows_of_" + rank));
  for (const std::int64_t row : seen) file << row << "\n";
}

std::vector<std::int64_t> rows_in(const fs::path& file) {
  std::vector<std::int64_t> rows;
  std::ifstream stream(file);
  for (std::int64_t row = 0; stream >> row;) rows.push_back(row);
  return rows;
}

using Ranks = std::vector<std::vector<std::int64_t>>;
Ranks rows_of_ranks(const fs::path& storage, std::int64_t workers, bool fails) {
  const train::Result result =
      train::Trainer(fn<reads_two_epochs>, options_of(storage, workers, {{"equal", true}, {"fails", fails}})).fit();
  EXPECT_EQ(result.attempts, fails ? 2 : 1);
  Ranks ranks;
  for (std::int64_t rank = 0; rank < workers; ++rank)
    ranks.push_back(rows_in(result.path / ("rows_of_" + std::to_string(rank))));
  return ranks;
}

TEST(RunDataset, RanksShareEveryRowOfAnEpoch) {
  const TemporaryDirectory storage;
  const Ranks ranks = rows_of_ranks(storage.path(), 2, false);
  std::vector<std::int64_t> all;
  for (const auto& rows : ranks) {
    EXPECT_EQ(std::ssize(rows), kRows) << "half of two epochs";
    all.insert(all.end(), rows.begin(), rows.end());
  }
  std::ranges::sort(all);
  std::vector<std::int64_t> expected;
  for (const std::int64_t epoch : {0, 1}) {
    for (std::int64_t row = 0; row < kRows; ++row) expected.push_back(epoch * 1000 + row);
  }
  EXPECT_EQ(all, expected);
}

TEST(RunDataset, AfterAFailureItGoesOnInTheMiddleOfTheEpoch) {
  const TemporaryDirectory quiet;
  const TemporaryDirectory disturbed;
  EXPECT_EQ(rows_of_ranks(disturbed.path(), 2, true), rows_of_ranks(quiet.path(), 2, false));
}

void asks_for_nothing_that_is_there(const Config&) { get_dataset_shard("letters"); }

TEST(RunDataset, ANameThatTheRunDoesNotHaveIsAnError) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_of(storage.path(), 1);
  options.run_config.failure_config.max_failures = 0;
  EXPECT_THAT(
      message_of<train::TrainingFailed>([&] { train::Trainer(fn<asks_for_nothing_that_is_there>, options).fit(); }),
      AllOf(HasSubstr("no dataset \"letters\""), HasSubstr("numbers")));
  EXPECT_THAT(message_of<Error>([] { get_dataset_shard("numbers"); }), HasSubstr("outside a worker"));
  options.run_config.name = "other";
  options.datasets.push_back(options.datasets.front());
  EXPECT_THAT(message_of<InvalidArgument>([&] { train::Trainer(fn<asks_for_nothing_that_is_there>, options); }),
              HasSubstr("two of the name \"numbers\""));
}

}  // namespace
}  // namespace cadre::data
