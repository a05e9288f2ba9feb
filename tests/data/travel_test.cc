// Datasets in configs, passed to the workers of a training run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>

#include "cadre/data.h"
#include "cadre/train.h"
#include "support/temporary_directory.h"

namespace cadre::data {
namespace {

using test_support::TemporaryDirectory;

Batch halve(const Batch& batch) {
  std::vector<double> halves;
  for (const std::int64_t id : batch.values<std::int64_t>("id")) halves.push_back(static_cast<double>(id) / 2);
  return batch.with("half", std::move(halves))
      .with("process", std::vector<std::int64_t>(static_cast<std::size_t>(batch.num_rows()), ::getpid()));
}

// Sums the rank's share and reports the sum.
Value sum_shares(const Config& config) {
  const train::TrainContext context = train::get_context();
  Shard shard = Dataset(config.at("rows"))
                    .shard({.rank = context.get_world_rank(), .world_size = context.get_world_size(), .shuffle = true});
  double sum = 0;
  bool here = true;
  for (const Batch& batch : shard.iter_batches({.batch_size = 10})) {
    for (const double half : batch.values<double>("half")) sum += half;
    for (const std::int64_t process : batch.values<std::int64_t>("process")) here &= process == ::getpid();
  }
  train::report({{"sum", sum}, {"here", here}});
  return sum;
}

TEST(Travel, RowsInMemoryAndFunctionsReachTheWorkersOfATrainingRun) {
  const TemporaryDirectory directory;
  const Dataset rows = from_rows({{{"id", 1}}, {{"id", 2}}, {{"id", 3}}, {{"id", 5}}}).map_batches(fn<halve>);
  train::Trainer trainer(fn<sum_shares>, {.train_loop_config = {{"rows", rows}},
                                          .scaling_config = {.num_workers = 2},
                                          .run_config = {.storage_path = directory.path(), .verbose = 0}});
  const train::Result result = trainer.fit();
  EXPECT_EQ(result.return_value, Value(1.5));         // half of the rows 1 and 2
  EXPECT_EQ(result.metrics.get<bool>("here"), true);  // a worker without workers of its own runs functions in threads
}

}  // namespace
}  // namespace cadre::data
