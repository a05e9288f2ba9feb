// Operators that choose or make rows: flat_map, random_sample, train_test_split.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <stdexcept>

#include "cadre/data.h"
#include "small_datasets.h"
#include "support/message_of.h"

namespace cadre::data {
namespace {

using test_support::message_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::int64_t> ids_of(const Dataset& dataset) {
  std::vector<std::int64_t> ids;
  for (const Batch& batch : dataset.iter_batches()) {
    const auto values = batch.values<std::int64_t>("id");
    ids.insert(ids.end(), values.begin(), values.end());
  }
  return ids;
}

std::vector<Row> as_often_as_it_says(const Row& row) {
  return std::vector<Row>(static_cast<std::size_t>(row.get<std::int64_t>("id")), row);
}
std::vector<Row> no_rows(const Row&) { return {}; }
std::vector<Row> of_large(const Row& row) {
  return row.get<std::int64_t>("id") < 50000 ? std::vector<Row>{} : std::vector<Row>{row};
}

TEST(FlatMap, MakesAnyNumberOfRowsOfOne) {
  EXPECT_THAT(ids_of(threads(range(4)).flat_map(fn<as_often_as_it_says>)), ElementsAre(1, 2, 2, 3, 3, 3));
  EXPECT_THAT(threads(range(4)).flat_map(fn<no_rows>).take_all(), IsEmpty());
  EXPECT_EQ(threads(range(4)).flat_map(fn<no_rows>).count(), 0);
}

// Their columns are unknown, and a batch without rows has none.
TEST(FlatMap, MayMakeNoRowsOfWholeBatches) {
  EXPECT_EQ(threads(range(200000)).flat_map(fn<of_large>).count(), 150000);
  EXPECT_THAT(threads(range(200000)).flat_map(fn<of_large>).take(1), ElementsAre(Row{{"id", 50000}}));
}

TEST(FlatMap, RunsInWorkerProcesses) {
  const Dataset rows = range(4)
                           .with_options({.num_threads = 2, .function_place = FunctionPlace::processes})
                           .flat_map(fn<as_often_as_it_says>);
  EXPECT_THAT(ids_of(rows), ElementsAre(1, 2, 2, 3, 3, 3));
  EXPECT_THAT(ids_of(Dataset(Value(rows))), ElementsAre(1, 2, 2, 3, 3, 3));
}

TEST(RandomSample, DependsOnlyOnTheSeedAndTheRowsPlaces) {
  const std::vector<std::int64_t> sample = ids_of(threads(range(200000)).random_sample(0.1, 7));
  EXPECT_NEAR(static_cast<double>(sample.size()), 20000, 600);
  EXPECT_TRUE(std::ranges::is_sorted(sample));
  EXPECT_EQ(ids_of(threads(range(200000), 1).random_sample(0.1, 7)), sample);
  EXPECT_EQ(ids_of(threads(range(200000)).skip(0).random_sample(0.1, 7)), sample);
  EXPECT_EQ(threads(range(200000)).random_sample(0.1, 7).count(), std::ssize(sample));
  EXPECT_NE(ids_of(threads(range(200000)).random_sample(0.1, 8)), sample);
  EXPECT_EQ(ids_of(Dataset(Value(threads(range(200000)).random_sample(0.1, 7)))), sample);
}

TEST(RandomSample, OfAllOrNothingIsThat) {
  EXPECT_EQ(threads(range(1000)).random_sample(1, 1).count(), 1000);
  EXPECT_EQ(threads(range(1000)).random_sample(0, 1).count(), 0);
  EXPECT_EQ(threads(range(1000)).select_columns({}).random_sample(1, 1).count(), 1000);
  EXPECT_EQ(threads(range(1000)).select_columns({}).random_sample(0.5, 1).count(),
            threads(range(1000)).random_sample(0.5, 1).count());
}

TEST(RandomSample, RefusesAFractionThatIsNone) {
  for (const double fraction : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THAT(message_of<InvalidArgument>([&] { range(3).random_sample(fraction, 1); }),
                AllOf(HasSubstr("random_sample cannot be used"), HasSubstr("it must be from 0 to 1")));
}

TEST(TrainTestSplit, TakesTheLastRowsForTheTest) {
  const auto [train, test] = threads(range(8)).train_test_split(0.25);
  EXPECT_THAT(ids_of(train), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(ids_of(test), ElementsAre(6, 7));
  EXPECT_THAT(ids_of(threads(range(8)).train_test_split(3).second), ElementsAre(5, 6, 7));
  EXPECT_EQ(threads(range(7)).train_test_split(0.1).second.count(), 1);  // rounded up
}

TEST(TrainTestSplit, RoundsUpTheDecimalShareAndNotItsBinaryForm) {
  const auto test_rows = [](std::int64_t rows, double test_fraction) {
    return threads(range(rows)).train_test_split(test_fraction).second.count();
  };
  EXPECT_EQ(test_rows(10, 0.8), 8);
  EXPECT_EQ(test_rows(10, 0.9), 9);
  EXPECT_EQ(test_rows(10, 0.31), 4);
  EXPECT_EQ(test_rows(100, 0.07), 7);  // the product of the doubles is above 7
  EXPECT_EQ(test_rows(10, 1 - 0.7), 3);
  EXPECT_EQ(test_rows(10, 1 - 0.9), 1);
  EXPECT_EQ(test_rows(10, 1e-18), 1);
}

std::atomic<int> rows_seen = 0;
bool sees_row(const Row&) {
  ++rows_seen;
  return true;
}

TEST(TrainTestSplit, CountsTheRowsOnce) {
  const Dataset rows = threads(range(8)).filter(fn<sees_row>);
  rows_seen = 0;
  const auto [train, test] = rows.train_test_split(0.25);
  EXPECT_EQ(rows_seen, 8);
  EXPECT_EQ(test.count(), 2);
}

TEST(TrainTestSplit, ShufflesBeforeIfAsked) {
  const auto [train, test] = threads(range(100)).train_test_split(0.2, {.shuffle = true, .seed = 3});
  std::vector<std::int64_t> all = ids_of(train);
  EXPECT_FALSE(std::ranges::is_sorted(all));
  for (const std::int64_t id : ids_of(test)) all.push_back(id);
  EXPECT_EQ(std::set<std::int64_t>(all.begin(), all.end()).size(), 100);
  EXPECT_EQ(ids_of(threads(range(100)).train_test_split(20, {.shuffle = true, .seed = 3}).second), ids_of(test));
}

TEST(TrainTestSplit, RefusesPartsWithoutRows) {
  EXPECT_THAT(message_of<InvalidArgument>([] { range(10).train_test_split(1.5); }),
              HasSubstr("test_fraction is 1.5; it must be above 0 and below 1"));
  EXPECT_THAT(message_of<InvalidArgument>([] { range(10).train_test_split(10); }), HasSubstr("10 of 10 rows"));
  EXPECT_THAT(message_of<InvalidArgument>([] { range(10).train_test_split(0); }), HasSubstr("0 of 10 rows"));
  EXPECT_THAT(message_of<InvalidArgument>([] { range(1).train_test_split(0.5); }), HasSubstr("1 of 1 rows"));
}

TEST(Shard, OfRowsThatAreNotThoseReadIsRefused) {
  const auto refused = [](const Dataset& dataset) {
    return message_of<InvalidArgument>([&] { static_cast<void>(dataset.shard({.world_size = 2}).size()); });
  };
  EXPECT_THAT(refused(range(10).sort("id")), HasSubstr("a dataset with sort after other operators cannot be shared"));
  EXPECT_THAT(refused(range(10).groupby("id").count()), HasSubstr("groupby"));
  EXPECT_THAT(refused(range(10).join(range(5), JoinType::inner, {.on = {"id"}})), HasSubstr("join"));
  EXPECT_THAT(refused(range(10).zip({range(10)})), HasSubstr("zip"));
  EXPECT_THAT(refused(range(10).random_sample(0.5, 1)), HasSubstr("random_sample"));
  EXPECT_EQ(range(10).sort("id").materialize().shard({.world_size = 2}).size(), 5);
}

}  // namespace
}  // namespace cadre::data
