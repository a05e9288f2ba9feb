// The epoch that functions and classes of a dataset get.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "cadre/data.h"
#include "support/message_of.h"

namespace cadre::data {
namespace {

using test_support::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Batch with_epoch(const Batch& batch, std::uint64_t epoch) {
  return batch.with(
      "epoch", std::vector<std::int64_t>(static_cast<std::size_t>(batch.num_rows()), static_cast<std::int64_t>(epoch)));
}

Batch epoch_of_batch(const Batch& batch, const CallContext& context) { return with_epoch(batch, context.epoch); }
Batch epoch_and_config(const Batch& batch, const Config& config, const CallContext& context) {
  return with_epoch(batch, context.epoch + config.get<std::uint64_t>("plus"));
}
Row epoch_of_row(const Row& row, const CallContext& context) {
  return {{"id", row.get<std::int64_t>("id")}, {"epoch", context.epoch}};
}
std::vector<Row> epochs_of_row(const Row& row, const CallContext& context) {
  return {epoch_of_row(row, context), epoch_of_row(row, context)};
}
bool is_epoch(const Row& row, const CallContext& context) {
  return row.get<std::uint64_t>("epoch") == context.epoch && context.epoch == 3;
}

class MadeInEpoch {
 public:
  explicit MadeInEpoch(const CallContext& context) : epoch_(context.epoch) {}
  Batch operator()(const Batch& batch) const { return with_epoch(batch, epoch_); }

 private:
  std::uint64_t epoch_;
};

class MadeOfConfigInEpoch {
 public:
  MadeOfConfigInEpoch(const Config& config, const CallContext& context)
      : epoch_(context.epoch + config.get<std::uint64_t>("plus")) {}
  Batch operator()(const Batch& batch) const { return with_epoch(batch, epoch_); }

 private:
  std::uint64_t epoch_;
};

// Returns the epochs that rows have got in a loop.
template <class Rows>
std::set<std::int64_t> epochs_in(const Rows& rows, const IterBatchesOptions& options = {}) {
  std::set<std::int64_t> epochs;
  for (const Batch& batch : rows.iter_batches(options)) {
    for (const std::int64_t epoch : batch.values<std::int64_t>("epoch")) epochs.insert(epoch);
  }
  return epochs;
}

class CallContexts : public ::testing::TestWithParam<FunctionPlace> {
 protected:
  Dataset rows() const { return range(8).with_options({.num_threads = 2, .function_place = GetParam()}); }
};

TEST_P(CallContexts, HaveTheEpochOfTheShardWhoseLoopItIs) {
  const Config plus{{"plus", 100}};
  const std::vector<std::pair<Dataset, std::int64_t>> all = {
      {rows().map_batches(fn<epoch_of_batch>), 0},
      {rows().map_batches(fn<epoch_and_config>, {.config = plus}), 100},
      {rows().map_batches(actor<MadeInEpoch>()), 0},
      {rows().map_batches(actor<MadeOfConfigInEpoch>(), {.constructor_config = plus}), 100},
      {rows().map(fn<epoch_of_row>), 0},
      {rows().flat_map(fn<epochs_of_row>), 0}};
  for (const auto& [dataset, added] : all) {
    Shard shard = dataset.shard({.rank = 1, .world_size = 2});
    EXPECT_THAT(epochs_in(shard), ElementsAre(added));
    shard.set_epoch(3);
    EXPECT_THAT(epochs_in(shard), ElementsAre(added + 3));
    EXPECT_THAT(epochs_in(shard), ElementsAre(added + 3)) << "the end of a loop begins no epoch";
    EXPECT_THAT(epochs_in(dataset, {.epoch = 7}), ElementsAre(added + 7));
    EXPECT_EQ(dataset.take(1)[0].get<std::int64_t>("epoch"), added) << "it is no loop of a training";
  }
}

TEST_P(CallContexts, ReachConditionsAndPositions) {
  const Dataset chosen = rows().map(fn<epoch_of_row>).filter(fn<is_epoch>);
  EXPECT_THAT(epochs_in(chosen, {.epoch = 3}), ElementsAre(3));
  EXPECT_TRUE(epochs_in(chosen, {.epoch = 4}).empty());

  Shard before = rows().map_batches(fn<epoch_of_batch>).shard({});
  before.set_epoch(5);
  Value position;
  for (const Batch& batch : before.iter_batches({.batch_size = 3, .prefetch_batches = 0})) {
    static_cast<void>(batch);
    position = before.position();
    break;
  }
  Shard after = rows().map_batches(fn<epoch_of_batch>).shard({});
  after.set_position(position);
  EXPECT_THAT(epochs_in(after), ElementsAre(5)) << "training goes on in the epoch that was interrupted";
}

INSTANTIATE_TEST_SUITE_P(Places, CallContexts, ::testing::Values(FunctionPlace::threads, FunctionPlace::processes));

TEST(CallContextsOfShards, AreNotThoseOfTheLoop) {
  Shard shard = range(3).shard({});
  EXPECT_THAT(message_of<InvalidArgument>([&] { static_cast<void>(shard.iter_batches({.epoch = 2})); }),
              HasSubstr("epoch is 2; a shard has its own epoch, which set_epoch() sets"));
}

}  // namespace
}  // namespace cadre::data
