// Numbers of rows, and random changes that depend on a seed, the epoch and the row only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "cadre/data/iterate.h"
#include "cadre/data/read.h"
#include "cadre/random.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::data {
namespace {

using test_support::message_of;
using test_support::TemporaryDirectory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Batch draw(const Batch& batch, const Config& config) {
  std::vector<double> draws;
  for (const std::int64_t row : batch.values<std::int64_t>("row")) {
    KeyedRandom random = KeyedRandom::of_example(config.get<std::uint64_t>("seed"), config.get<std::uint64_t>("epoch"),
                                                 static_cast<std::uint64_t>(row));
    draws.push_back(random->uniform());
  }
  return batch.with("draw", std::move(draws));
}

Batch unchanged(const Batch& batch) { return batch; }

class RowNumbers : public ::testing::Test {
 protected:
  RowNumbers() {
    std::vector<std::int64_t> ids;
    for (std::int64_t id = 0; id < 1000; ++id) ids.push_back(id);
    from_batches({Batch{{"id", ids}}})
        .with_options({.function_place = FunctionPlace::threads})
        .write_parquet(directory_ / "rows", {.max_rows_per_file = 300, .rows_per_row_group = 70});
  }
  Dataset read(std::int64_t threads = 2) const {
    return read_parquet((directory_ / "rows").string())
        .with_options({.num_threads = threads, .function_place = FunctionPlace::threads});
  }
  Dataset drawn(std::int64_t threads, std::uint64_t epoch) const {
    return with_row_numbers(read(threads))
        .map_batches(fn<draw>, {.concurrency = threads, .config = {{"seed", 5}, {"epoch", epoch}}});
  }

  TemporaryDirectory directory_;
};

TEST_F(RowNumbers, CountTheRowsOfAllFiles) {
  const Batch batch = with_row_numbers(read()).take_batch(1000);
  EXPECT_THAT(batch.columns(), ElementsAre("id", "row"));
  EXPECT_EQ(batch.to_vector<std::int64_t>("row"), batch.to_vector<std::int64_t>("id"));
  EXPECT_EQ(with_row_numbers(read()).count(), 1000);
  EXPECT_THAT(with_row_numbers(read()).columns(), ElementsAre("id", "row"));
  EXPECT_THAT(with_row_numbers(read()).filter(column("row") == 555).take_all(),
              ElementsAre(Row{{"id", 555}, {"row", 555}}));
  EXPECT_THAT(with_row_numbers(read(), "n").skip(998).select_columns({"n"}).take_all(),
              ElementsAre(Row{{"n", 998}}, Row{{"n", 999}}));
}

TEST_F(RowNumbers, AreThoseOfTheReadInEveryShard) {
  for (const std::uint64_t epoch : {0, 1}) {
    std::int64_t rows = 0;
    for (const std::int64_t rank : {0, 1, 2}) {
      Shard shard = with_row_numbers(read()).shard({.rank = rank, .world_size = 3, .shuffle = true});
      shard.set_epoch(epoch);
      for (const Batch& batch : shard.iter_batches({.batch_size = 32})) {
        EXPECT_EQ(batch.to_vector<std::int64_t>("row"), batch.to_vector<std::int64_t>("id"));
        rows += batch.num_rows();
      }
    }
    EXPECT_EQ(rows, 1000);
  }
}

TEST_F(RowNumbers, MakeRandomChangesEqualWithAnyNumberOfWorkersAndRanks) {
  const Batch one = drawn(1, 3).take_batch(1000);
  EXPECT_EQ(drawn(4, 3).take_batch(1000), one);
  EXPECT_NE(drawn(1, 4).take_batch(1000), one);
  const std::vector<double> draws = one.to_vector<double>("draw");
  for (const std::int64_t rank : {0, 1}) {
    Shard shard = drawn(2, 3).shard({.rank = rank, .world_size = 2, .shuffle = true});
    for (const Batch& batch : shard.iter_batches({.batch_size = 100})) {
      const auto ids = batch.values<std::int64_t>("id");
      const auto own = batch.values<double>("draw");
      for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(own[i], draws[static_cast<std::size_t>(ids[i])]);
    }
  }
}

TEST_F(RowNumbers, AreGivenToFilesThatAreCountedAndToRowsInMemory) {
  test_support::write_bytes(directory_ / "1.txt", "a\nb\n");
  test_support::write_bytes(directory_ / "2.txt", "c\n");
  const Dataset lines =
      read_text((directory_ / "*.txt").string()).with_options({.function_place = FunctionPlace::threads});
  EXPECT_THAT(
      with_row_numbers(lines).take_all(),
      ElementsAre(Row{{"text", "a"}, {"row", 0}}, Row{{"text", "b"}, {"row", 1}}, Row{{"text", "c"}, {"row", 2}}));
  EXPECT_THAT(with_row_numbers(range(2)).take_all(),
              ElementsAre(Row{{"id", 0}, {"row", 0}}, Row{{"id", 1}, {"row", 1}}));
}

TEST_F(RowNumbers, BelongToReadsOnly) {
  EXPECT_THAT(message_of<InvalidArgument>([&] { with_row_numbers(read().map_batches(fn<unchanged>)).count(); }),
              HasSubstr("cannot follow map_batches(unchanged): call it before"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { with_row_numbers(read().filter(column("id") > 5)).take_all(); }),
              HasSubstr("cannot follow"));
  const Dataset filtered_in_part = read().concat({read().filter(column("id") > 5)});
  EXPECT_THAT(message_of<InvalidArgument>([&] { with_row_numbers(filtered_in_part).take_all(); }),
              HasSubstr("cannot follow concat"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { with_row_numbers(read(), "id").take_all(); }),
              HasSubstr("there is a column \"id\" already"));
}

TEST_F(RowNumbers, TravelAsAValue) {
  const Dataset rows = with_row_numbers(read());
  EXPECT_EQ(Dataset(Value(rows)).take_batch(1000), rows.take_batch(1000));
}

}  // namespace
}  // namespace cadre::data
