// Dataset::sort: the order, and rows beyond the memory limit.
#include "data/sort.h"

#include <arrow/array.h>
#include <arrow/json/from_string.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <random>

#include "cadre/data.h"
#include "small_datasets.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::data {
namespace {

using test_support::message_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Dataset from_json(const std::shared_ptr<arrow::DataType>& type, const std::string& values) {
  const auto array = arrow::json::ArrayFromJSONString(type, values).ValueOrDie();
  return threads(from_arrow(arrow::Table::Make(arrow::schema({arrow::field("a", type)}), {array})));
}

std::vector<Value> values_of(const Dataset& dataset, const std::string& column) {
  std::vector<Value> values;
  for (const Row& row : dataset.take_all()) values.push_back(row.at(column));
  return values;
}

// Rows in several batches, with a column that has their places.
Dataset random_rows(std::int64_t rows, std::int64_t different, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Batch> batches;
  for (std::int64_t at = 0; at < rows;) {
    const std::int64_t count = std::min<std::int64_t>(rows - at, 1000);
    std::vector<std::int64_t> keys;
    std::vector<std::int64_t> places;
    std::vector<std::string> texts;
    for (std::int64_t i = 0; i < count; ++i) {
      keys.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(different)));
      places.push_back(at + i);
      texts.push_back("text " + std::to_string(keys.back() % 7));
    }
    batches.push_back(Batch{{"key", std::move(keys)}, {"place", std::move(places)}, {"text", texts}});
    at += count;
  }
  return threads(from_batches(batches));
}

struct KeyAndPlace {
  std::vector<std::int64_t> keys = {};
  std::vector<std::int64_t> places = {};
};

KeyAndPlace read(const Dataset& dataset) {
  KeyAndPlace all;
  for (const Batch& batch : dataset.iter_batches()) {
    const auto keys = batch.values<std::int64_t>("key");
    const auto places = batch.values<std::int64_t>("place");
    all.keys.insert(all.keys.end(), keys.begin(), keys.end());
    all.places.insert(all.places.end(), places.begin(), places.end());
  }
  return all;
}

// Expects the rows of `dataset`, sorted by "key" and then in their order.
void expect_sorted(const Dataset& dataset, const Dataset& sorted) {
  const KeyAndPlace before = read(dataset);
  std::vector<std::int64_t> places = before.places;
  std::ranges::stable_sort(places, {},
                           [&](std::int64_t place) { return before.keys[static_cast<std::size_t>(place)]; });
  EXPECT_EQ(read(sorted).places, places);
}

TEST(Sort, KeepsTheOrderOfEqualRows) {
  const Dataset rows = random_rows(10000, 20, 1);
  expect_sorted(rows, rows.sort("key"));
}

TEST(Sort, OfSeveralColumnsHasADirectionForEach) {
  const Dataset rows = threads(
      from_rows({{{"a", 1}, {"b", "x"}}, {{"a", 2}, {"b", "x"}}, {{"a", 1}, {"b", "y"}}, {{"a", 2}, {"b", "y"}}}));
  EXPECT_THAT(rows.sort({{"a", true}, "b"}).take_all(),
              ElementsAre(Row{{"a", 2}, {"b", "x"}}, Row{{"a", 2}, {"b", "y"}}, Row{{"a", 1}, {"b", "x"}},
                          Row{{"a", 1}, {"b", "y"}}));
  EXPECT_THAT(values_of(rows.sort({"b", {"a", true}}), "a"), ElementsAre(2, 1, 2, 1));
  EXPECT_THAT(values_of(rows.sort("a", true), "a"), ElementsAre(2, 2, 1, 1));
}

TEST(Sort, PutsNullsLastAndNanBeforeThemInBothDirections) {
  const Dataset rows = threads(from_rows({{{"a", kNan}}, {{"a", Value()}}, {{"a", 2.0}}, {{"a", 1.0}}}));
  EXPECT_THAT(values_of(rows.sort("a"), "a"), ElementsAre(1.0, 2.0, kNan, Value()));
  EXPECT_THAT(values_of(rows.sort("a", true), "a"), ElementsAre(2.0, 1.0, kNan, Value()));
}

TEST(Sort, OrdersEveryTypeOfKeys) {
  EXPECT_THAT(values_of(from_json(arrow::boolean(), "[true, null, false]").sort("a"), "a"),
              ElementsAre(false, true, Value()));
  EXPECT_THAT(values_of(from_json(arrow::utf8(), R"(["b", "", "ä", "a"])").sort("a"), "a"),
              ElementsAre("", "a", "b", "ä"));
  EXPECT_THAT(values_of(from_json(arrow::date32(), "[20000, 3, -1]").sort("a"), "a"),
              ElementsAre("1969-12-31", "1970-01-04", "2024-10-04"));
  EXPECT_THAT(values_of(from_json(arrow::decimal128(5, 2), R"(["3.10", "-2.00", "1.50"])").sort("a"), "a"),
              ElementsAre("-2.00", "1.50", "3.10"));
  EXPECT_THAT(values_of(from_json(arrow::uint64(), "[18446744073709551615, 1]").sort("a", true), "a").back(), Value(1));
  EXPECT_THAT(values_of(from_json(arrow::float16(), "[2.5, -1.5]").sort("a"), "a"), ElementsAre(-1.5, 2.5));
}

TEST(Sort, OrdersDictionariesByTheirValuesAndKeepsThem) {
  const Dataset rows = from_json(arrow::dictionary(arrow::int8(), arrow::utf8()), R"(["c", "a", null, "b", "a"])");
  EXPECT_THAT(values_of(rows.sort("a"), "a"), ElementsAre("a", "a", "b", "c", Value()));
  EXPECT_EQ(rows.sort("a").schema(), rows.schema());
}

TEST(Sort, BeyondTheMemoryLimitGoesToDisk) {
  const test_support::TemporaryDirectory disk;
  const test_support::TemporaryFilesIn here(disk);
  const Dataset rows = random_rows(200000, 5000, 2);
  const Dataset little = rows.with_options({.memory_limit_bytes = 1 << 20, .num_threads = 2});
  expect_sorted(rows, little.sort("key"));
  EXPECT_EQ(little.sort("key").count(), 200000);
  EXPECT_TRUE(std::filesystem::is_empty(disk.path()));
  bool was_on_disk = false;
  for ([[maybe_unused]] const Batch& batch : little.sort("key").iter_batches()) {
    was_on_disk = !std::filesystem::is_empty(disk.path());
    break;
  }
  EXPECT_TRUE(was_on_disk);
  EXPECT_TRUE(std::filesystem::is_empty(disk.path()));
}

TEST(Sort, OfSortedRowsBeyondTheMemoryLimitIsTheSame) {
  std::vector<Batch> batches;
  for (std::int64_t at = 0; at < 150000; at += 1000) {
    std::vector<std::int64_t> keys(1000);
    std::iota(keys.begin(), keys.end(), at);
    batches.push_back(Batch{{"key", keys}, {"place", keys}});
  }
  const Dataset rows = from_batches(batches).with_options({.memory_limit_bytes = 1 << 20, .num_threads = 2});
  expect_sorted(rows, rows.sort("key"));
}

// A stream of its blocks.
class Blocks final : public BlockStream {
 public:
  explicit Blocks(std::vector<Block> blocks) : blocks_(std::move(blocks)) {}
  std::optional<Block> next() override {
    if (at_ == blocks_.size()) return std::nullopt;
    return blocks_[at_++];
  }
  void cancel() override {}

 private:
  std::vector<Block> blocks_;
  std::size_t at_ = 0;
};

TEST(Sort, OfMoreRunsThanAreMergedAtATimeKeepsTheOrderOfEqualRows) {
  const Dataset rows = random_rows(40000, 30, 3);
  std::vector<Block> blocks;
  for (const Batch& batch : rows.iter_batches({.batch_size = 200})) blocks.push_back(batch.arrow());
  ExecutionProgress progress("", 0, false);
  // Each block of 200 rows is a run, of which 64 are merged at a time.
  Sorted sorted(std::make_unique<Blocks>(blocks),
                {.keys = {"key"}, .limit_bytes = 2000, .block_bytes = 1000, .pool = arrow::default_memory_pool()},
                progress.add("sort", 1));
  std::vector<std::int64_t> places;
  while (const auto block = sorted.next()) {
    const Batch batch(*block);
    for (const std::int64_t place : batch.values<std::int64_t>("place")) places.push_back(place);
  }
  EXPECT_EQ(places, read(rows.sort("key")).places);
}

TEST(Sort, OfDictionariesBeyondTheMemoryLimitKeepsTheirValues) {
  std::vector<Batch> batches;
  std::vector<std::string> expected;
  for (int i = 0; i < 200; ++i) {  // each batch has a dictionary of its own
    const std::string word = "word " + std::to_string(1000 - i);
    const auto array = arrow::json::ArrayFromJSONString(arrow::dictionary(arrow::int32(), arrow::utf8()),
                                                        "[\"" + word + "\", \"" + word + " more\"]")
                           .ValueOrDie();
    batches.push_back(Batch{{"a", Column(array)}, {"wide", std::vector<double>(2)}});
    expected.insert(expected.end(), {word, word + " more"});
  }
  std::vector<Block> blocks;
  for (const Batch& batch : batches) blocks.push_back(batch.arrow());
  ExecutionProgress progress("", 0, false);
  Sorted sorted(std::make_unique<Blocks>(blocks),
                {.keys = {"a"}, .limit_bytes = 500, .block_bytes = 100, .pool = arrow::default_memory_pool()},
                progress.add("sort", 1));
  std::vector<std::string> found;
  while (const auto block = sorted.next()) {
    for (const Row& row : Batch(*block).rows()) found.push_back(row.get<std::string>("a"));
  }
  std::ranges::sort(expected);
  EXPECT_EQ(found, expected);
}

TEST(Sort, IsFollowedByOtherOperators) {
  const Dataset sorted = random_rows(1000, 1000000, 4).sort("key");
  EXPECT_EQ(sorted.limit(3).count(), 3);
  EXPECT_EQ(values_of(sorted.limit(1), "key").front(), sorted.min("key"));
  EXPECT_EQ(sorted.filter(column("key") > 500000).select_columns({"place"}).columns(),
            (std::vector<std::string>{"place"}));
  EXPECT_EQ(sorted.sort("place").take(1).front().at("place"), Value(0));
}

TEST(Sort, OfNothingIsNothing) {
  EXPECT_THAT(threads(range(0)).sort("id").take_all(), IsEmpty());
  EXPECT_EQ(threads(range(0)).sort("id").schema(), (Schema{{{"id", "int64"}}}));
  EXPECT_EQ(threads(range(5)).sort("id").count(), 5);
}

TEST(Sort, TravelsAsAValue) {
  const Dataset sorted = range(4).sort({{"id", true}});
  EXPECT_THAT(values_of(Dataset(Value(sorted)), "id"), ElementsAre(3, 2, 1, 0));
}

TEST(Sort, RefusesColumnsBeforeAnythingRuns) {
  EXPECT_THAT(message_of<InvalidArgument>([] { range(3).sort("ids").take(); }),
              AllOf(HasSubstr("sort has no column \"ids\""), HasSubstr("its columns are: id")));
  EXPECT_THAT(message_of<InvalidArgument>([] { range(3).sort(std::vector<SortKey>{}); }),
              HasSubstr("sort cannot be used:\n  it needs at least one column"));
  EXPECT_THAT(message_of<InvalidArgument>([] { range(3).sort({"id", {"id", true}}); }),
              HasSubstr("the column \"id\" is there twice"));
  const Dataset lists = from_json(arrow::list(arrow::int64()), "[[1], [2]]");
  EXPECT_THAT(message_of<InvalidArgument>([&] {
                lists.sort("a").count();
                lists.sort("a").take();
              }),
              AllOf(HasSubstr("sort cannot compare the values of the column \"a\""), HasSubstr("list<item: int64>")));
}

Batch with_lists(const Batch& batch) {
  return batch.with(
      "list", Column(arrow::json::ArrayFromJSONString(arrow::list(arrow::int64()), "[[1], [2], [3]]").ValueOrDie()));
}

TEST(Sort, RefusesColumnsThatAFunctionMakes) {
  const Dataset lists = threads(range(3)).map_batches(fn<with_lists>, {.batch_size = 3});
  EXPECT_THAT(message_of<InvalidArgument>([&] { lists.sort("list").take(); }), HasSubstr("sort cannot compare"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { lists.sort("lists").take(); }), HasSubstr("no column \"lists\""));
}

}  // namespace
}  // namespace cadre::data
