// Shards of ranks, and resuming at a position.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

#include "cadre/data.h"
#include "data/shard_position.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::data {
namespace {

using test_support::message_of;
using test_support::TemporaryDirectory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kRows = 1003;

Batch keep_even(const Batch& batch) {
  std::vector<std::int64_t> even;
  for (const std::int64_t id : batch.values<std::int64_t>("id")) {
    if (id % 2 == 0) even.push_back(id);
  }
  return Batch{{"id", std::move(even)}};
}

class ShardTest : public ::testing::Test {
 protected:
  ShardTest() {
    std::vector<std::int64_t> ids(kRows);
    std::iota(ids.begin(), ids.end(), 0);
    from_batches({Batch{{"id", std::move(ids)}}})
        .write_parquet(directory_ / "rows", {.max_rows_per_file = 400, .rows_per_row_group = 37});
  }
  Dataset dataset() const { return read_parquet((directory_ / "rows").string()); }

  TemporaryDirectory directory_;
};

std::vector<std::int64_t> take(Shard& shard, const IterBatchesOptions& options = {.batch_size = 10},
                               std::int64_t most_batches = 1 << 30) {
  std::vector<std::int64_t> ids;
  for (const Batch& batch : shard.iter_batches(options)) {
    const auto values = batch.values<std::int64_t>("id");
    ids.insert(ids.end(), values.begin(), values.end());
    if (--most_batches == 0) break;
  }
  return ids;
}

std::vector<std::int64_t> sorted(std::vector<std::int64_t> ids) {
  std::ranges::sort(ids);
  return ids;
}

std::vector<std::int64_t> all_ids() {
  std::vector<std::int64_t> ids(kRows);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

TEST_F(ShardTest, OfAllRanksHaveEveryRowOnce) {
  for (const std::int64_t world_size : {1, 2, 3, 7}) {
    std::vector<std::int64_t> together;
    for (std::int64_t rank = 0; rank < world_size; ++rank) {
      Shard shard = dataset().shard({.rank = rank, .world_size = world_size, .shuffle = true});
      const auto ids = take(shard);
      EXPECT_EQ(std::ssize(ids), shard.size());
      together.insert(together.end(), ids.begin(), ids.end());
    }
    EXPECT_EQ(sorted(together), all_ids()) << world_size;
  }
}

TEST_F(ShardTest, ThatAreEqualLeaveOutFewerRowsThanThereAreRanks) {
  std::set<std::int64_t> together;
  for (std::int64_t rank = 0; rank < 5; ++rank) {
    Shard shard = dataset().shard({.rank = rank, .world_size = 5, .equal = true});
    const auto ids = take(shard);
    EXPECT_EQ(std::ssize(ids), kRows / 5);
    together.insert(ids.begin(), ids.end());
  }
  EXPECT_EQ(std::ssize(together), kRows / 5 * 5);
}

TEST_F(ShardTest, HasAnotherOrderInEachEpochAndTheSameWhenItIsAskedAgain) {
  Shard shard = dataset().shard({.shuffle = true, .seed = 3});
  const auto first = take(shard);
  EXPECT_EQ(take(shard), first);  // the same epoch again
  shard.set_epoch(1);
  const auto second = take(shard);
  EXPECT_NE(second, first);
  EXPECT_EQ(sorted(second), all_ids());
  shard.set_epoch(0);
  EXPECT_EQ(take(shard), first);
  Shard other = dataset().shard({.shuffle = true, .seed = 4});
  EXPECT_NE(take(other), first);
}

TEST_F(ShardTest, GoesOnBehindTheLastBatchThatWasTaken) {
  for (const std::optional<std::int64_t> buffer : {std::optional<std::int64_t>(), std::optional<std::int64_t>(64)}) {
    const IterBatchesOptions options{.batch_size = 10, .local_shuffle_buffer_size = buffer, .local_shuffle_seed = 9};
    const ShardOptions of{.rank = 1, .world_size = 2, .shuffle = true, .seed = 5};
    Shard whole = dataset().shard(of);
    whole.set_epoch(2);
    const auto expected = take(whole, options);

    Shard interrupted = dataset().shard(of);
    interrupted.set_epoch(2);
    auto ids = take(interrupted, options, 13);
    const Value position = interrupted.position();

    Shard continued = dataset().shard(of);
    continued.set_position(position);
    EXPECT_EQ(continued.epoch(), 2U);
    const auto rest = take(continued, options);
    EXPECT_EQ(std::ssize(rest), std::ssize(expected) - 130);
    ids.insert(ids.end(), rest.begin(), rest.end());
    EXPECT_EQ(ids, expected);
  }
}

TEST_F(ShardTest, GoesOnBehindFunctionsThatChangeTheNumberOfRows) {
  const Dataset even = dataset().map_batches(fn<keep_even>).filter(column("id") > 20);
  const ShardOptions of{.rank = 0, .world_size = 2, .shuffle = true};
  Shard whole = even.shard(of);
  const auto expected = take(whole);
  Shard interrupted = even.shard(of);
  auto ids = take(interrupted, {.batch_size = 10}, 4);
  Shard continued = even.shard(of);
  continued.set_position(interrupted.position());
  const auto rest = take(continued);
  ids.insert(ids.end(), rest.begin(), rest.end());
  EXPECT_EQ(ids, expected);
}

TEST_F(ShardTest, SharesTheRestAnewWhenThereAreOtherRanks) {
  std::vector<std::int64_t> together;
  Value position;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    Shard shard = dataset().shard({.rank = rank, .world_size = 3, .shuffle = true});
    const auto ids = take(shard, {.batch_size = 10}, 7);
    together.insert(together.end(), ids.begin(), ids.end());
    position = shard.position();
  }
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    Shard shard = dataset().shard({.rank = rank, .world_size = 2, .shuffle = true});
    shard.set_position(position);
    const auto ids = take(shard);
    together.insert(together.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(sorted(together), all_ids());
}

TEST_F(ShardTest, RefusesPositionsThatAreNotItsOwn) {
  Shard shard = dataset().shard({.rank = 0, .world_size = 2});
  const Value position = shard.position();
  const auto refusal = [&](Shard other) { return message_of<InvalidArgument>([&] { other.set_position(position); }); };
  EXPECT_THAT(refusal(range(7).shard({.rank = 0, .world_size = 2})), HasSubstr("has 7"));
  EXPECT_THAT(refusal(dataset().shard({.rank = 0, .world_size = 2, .seed = 1})), HasSubstr("another seed"));
  EXPECT_THAT(refusal(dataset().filter(column("id") > 3).shard({.world_size = 1})), HasSubstr("saved by 2 ranks"));
  EXPECT_THROW(shard.set_position(Value(3)), InvalidArgument);
  EXPECT_THROW(shard.set_position(Value{{"version", 1}}), InvalidArgument);
}

// Takes one row on each of 2 ranks, and the rest on 2 ranks with another `equal`.
std::vector<std::int64_t> taken_with_another_equal(const Dataset& dataset, bool equal) {
  std::vector<std::int64_t> together;
  Value position;
  for (const std::int64_t rank : {0, 1}) {
    Shard shard = dataset.shard({.rank = rank, .world_size = 2, .equal = equal});
    together.push_back(take(shard, {.batch_size = 1}, 1).front());
    position = shard.position();
  }
  for (const std::int64_t rank : {0, 1}) {
    Shard shard = dataset.shard({.rank = rank, .world_size = 2, .equal = !equal});
    shard.set_position(position);
    const auto ids = take(shard);
    together.insert(together.end(), ids.begin(), ids.end());
  }
  return sorted(together);
}

TEST_F(ShardTest, SharesTheRestAnewWithAnotherEqual) {
  EXPECT_THAT(taken_with_another_equal(range(5), true), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(taken_with_another_equal(range(5), false), ElementsAre(0, 1, 2, 3));
  const Dataset some = dataset().filter(column("id") > 3);
  const Value position = some.shard({.world_size = 2}).position();
  EXPECT_THAT(message_of<InvalidArgument>([&] { some.shard({.world_size = 2, .equal = true}).set_position(position); }),
              HasSubstr("it was saved with `equal` false, and that is true now"));
}

TEST_F(ShardTest, RefusesFilesWithOtherNumbersOfRows) {
  const ShardOptions options{.shuffle = true};
  Shard shard = dataset().shard(options);
  const Value position = shard.position();
  std::vector<std::int64_t> ids(kRows);
  std::iota(ids.begin(), ids.end(), 0);
  const Dataset rows = from_batches({Batch{{"id", std::move(ids)}}});
  const auto write_again = [&](const Dataset& written) {
    std::filesystem::remove_all(directory_ / "rows");
    written.write_parquet(directory_ / "rows", {.max_rows_per_file = 401, .rows_per_row_group = 37});
  };
  write_again(rows);
  EXPECT_THAT(message_of<InvalidArgument>([&] { dataset().shard(options).set_position(position); }),
              HasSubstr("have other numbers of rows than when it was saved"));
  Config earlier(position);
  earlier.erase("pieces");
  EXPECT_NO_THROW(dataset().shard(options).set_position(earlier.value()));
  EXPECT_THAT(message_of<StorageError>([&] { take(shard); }),
              HasSubstr("the files of a dataset have changed since its rows were shared"));
}

TEST_F(ShardTest, NamesAFileThatWasWrittenAgainWithinAnEpoch) {
  const auto write = [&](const char* a, const char* b) {
    test_support::write_bytes(directory_ / "a.csv", a);
    test_support::write_bytes(directory_ / "b.csv", b);
  };
  const auto new_shard = [&] { return read_csv(directory_.path().string()).shard({}); };
  write("id\n1\n2\n3\n", "id\n4\n5\n6\n");
  Shard shard = new_shard();
  const Value at_begin = shard.position();
  take(shard, {.batch_size = 2}, 1);
  const Value within = shard.position();
  shard.set_epoch(0);
  take(shard);
  const Value at_end = shard.position();
  EXPECT_NO_THROW(new_shard().set_position(within));

  write("id\n1\n2\n", "id\n3\n4\n5\n6\n");  // as many rows
  EXPECT_THAT(message_of<InvalidArgument>([&] { new_shard().set_position(within); }),
              HasSubstr("a.csv has been written again: it has 7 bytes, and had 9"));
  EXPECT_NO_THROW(new_shard().set_position(at_begin));
  EXPECT_NO_THROW(new_shard().set_position(at_end));
  Config earlier(within);
  earlier.erase("files");
  EXPECT_NO_THROW(new_shard().set_position(earlier.value()));

  write("id\n1\n2\n3\n4\n5\n6\n", "");
  std::filesystem::remove(directory_ / "b.csv");
  EXPECT_THAT(message_of<InvalidArgument>([&] { new_shard().set_position(within); }),
              HasSubstr("there were 2 files, and there are 1 now"));
}

TEST_F(ShardTest, NoticesTextFilesThatHaveLostRows) {
  test_support::write_bytes(directory_ / "a.csv", "id\n1\n2\n3\n");
  Shard shard = read_csv((directory_ / "a.csv").string()).shard({});
  EXPECT_EQ(shard.size(), 3);
  test_support::write_bytes(directory_ / "a.csv", "id\n1\n2\n");
  EXPECT_THAT(message_of<StorageError>([&] { take(shard); }),
              HasSubstr("a.csv has changed since its rows were counted: it has 2, and had 3 or more"));
}

TEST_F(ShardTest, NeedsARankThatThereIs) {
  EXPECT_THROW(dataset().shard({.rank = 2, .world_size = 2}), InvalidArgument);
  EXPECT_THROW(dataset().shard({.rank = 0, .world_size = 0}), InvalidArgument);
  EXPECT_THAT(message_of<InvalidArgument>([&] { dataset().random_shuffle(1).shard({}).size(); }),
              HasSubstr("random_shuffle after other operators cannot be shared"));
}

TEST_F(ShardTest, OfTextFilesCountsTheirRows) {
  for (int file = 0; file < 4; ++file) {
    std::string text = "id\n";
    for (int row = 0; row < 25; ++row) text += std::to_string(25 * file + row) + "\n";
    test_support::write_bytes(directory_ / ("part" + std::to_string(file) + ".csv"), text);
  }
  std::vector<std::int64_t> together;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    Shard shard = read_csv(directory_.path().string()).shard({.rank = rank, .world_size = 3, .shuffle = true});
    const auto ids = take(shard, {.batch_size = 7});
    EXPECT_EQ(std::ssize(ids), rank == 0 ? 34 : 33);
    together.insert(together.end(), ids.begin(), ids.end());
  }
  std::vector<std::int64_t> hundred(100);
  std::iota(hundred.begin(), hundred.end(), 0);
  EXPECT_EQ(sorted(together), hundred);
}

TEST_F(ShardTest, OfLimitedFilesHasThoseRows) {
  Shard shard = dataset().skip(100).limit(200).shard({.rank = 1, .world_size = 2});
  const auto ids = take(shard);
  EXPECT_EQ(std::ssize(ids), 100);
  EXPECT_EQ(ids.front(), 200);
}

TEST(IterBatches, MixesRowsThatFollowEachOther) {
  const auto ids = [](const IterBatchesOptions& options) {
    std::vector<std::int64_t> all;
    for (const Batch& batch : range(1000).iter_batches(options)) {
      const auto values = batch.values<std::int64_t>("id");
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  const auto mixed = ids({.batch_size = 32, .local_shuffle_buffer_size = 100, .local_shuffle_seed = 1});
  EXPECT_NE(mixed, ids({.batch_size = 32}));
  EXPECT_EQ(mixed, ids({.batch_size = 32, .local_shuffle_buffer_size = 100, .local_shuffle_seed = 1}));
  EXPECT_NE(mixed, ids({.batch_size = 32, .local_shuffle_buffer_size = 100, .local_shuffle_seed = 2}));
  for (std::size_t at = 0; at < mixed.size(); ++at)
    EXPECT_EQ(mixed[at] / 100, static_cast<std::int64_t>(at) / 100);  // no row leaves its buffer
}

TEST(IterBatches, LeavesOutTheLastBatchWhereItIsSmaller) {
  std::vector<std::int64_t> sizes;
  for (const Batch& batch : range(10).iter_batches({.batch_size = 4, .drop_last = true}))
    sizes.push_back(batch.num_rows());
  EXPECT_THAT(sizes, ElementsAre(4, 4));
  sizes.clear();
  for (const Batch& batch : range(10).iter_batches({.batch_size = 4, .prefetch_batches = 0}))
    sizes.push_back(batch.num_rows());
  EXPECT_THAT(sizes, ElementsAre(4, 4, 2));
}

TEST(IterBatches, RefusesOptionsThatDoNotFit) {
  EXPECT_THAT(message_of<InvalidArgument>([] { range(1).iter_batches({.batch_size = 0, .prefetch_batches = -1}); }),
              HasSubstr("prefetch_batches is -1"));
  EXPECT_THROW(range(1).iter_batches({.batch_size = {}, .drop_last = true}), InvalidArgument);
}

TEST(ShardPosition, SharesRowsThatWereLeftOutUnlessItIsEqual) {
  const ShardPosition at{.world_size = 2, .equal = true, .ranges = {{0, 5}}, .taken = 1};
  EXPECT_THAT(reshared(at, 3, false).ranges, ElementsAre(RowRange{1, 2}, RowRange{3, 4}, RowRange{4, 5}));
  EXPECT_THAT(reshared(at, 3, true).ranges, ElementsAre(RowRange{1, 2}, RowRange{3, 4}));
}

TEST(ShardPosition, SharesEveryRangeEvenly) {
  const ShardPosition at{.world_size = 3, .ranges = {{0, 4}, {10, 16}}};
  EXPECT_THAT(share_of(at, 0), ElementsAre(RowRange{0, 4}));
  EXPECT_THAT(share_of(at, 1), ElementsAre(RowRange{10, 13}));
  EXPECT_THAT(share_of(at, 2), ElementsAre(RowRange{13, 16}));
}

}  // namespace
}  // namespace cadre::data
