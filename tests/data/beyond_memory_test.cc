// groupby and join of more than the memory limit: they go to disk, and their results are those that they have in
// memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cadre/data.h"
#include "data/keys.h"
#include "data/partitions.h"
#include "data/small_datasets.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::data {
namespace {

using test_support::message_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kLittle = std::int64_t{1} << 20;

Dataset with_little_memory(const Dataset& dataset) {
  return dataset.with_options(
      {.memory_limit_bytes = kLittle, .num_threads = 2, .function_place = FunctionPlace::threads});
}

Batch with_one_key(const Batch& batch) {
  return batch.with("key", std::vector<std::int64_t>(static_cast<std::size_t>(batch.num_rows()), 1));
}
Batch unchanged_rows(const Batch& batch) { return batch; }

// Returns rows with keys of several types: numbers with nulls and NaN, texts, and a number below `keys`.
Dataset random_rows(std::int64_t rows, std::int64_t keys, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Batch> batches;
  for (std::int64_t at = 0; at < rows; at += 5000) {
    std::vector<std::int64_t> numbers;
    std::vector<double> doubles;
    std::vector<std::string> texts;
    std::vector<double> values;
    for (std::int64_t row = at; row < std::min(at + 5000, rows); ++row) {
      numbers.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(keys)));
      doubles.push_back(random() % 50 == 0 ? kNan
                                           : (random() % 2 == 0 ? 0.0 : -0.0) + static_cast<double>(random() % 100));
      texts.push_back("text " + std::to_string(random() % static_cast<std::uint32_t>(keys)));
      values.push_back(static_cast<double>(random()) / 1e6);
    }
    batches.push_back(Batch{{"number", std::move(numbers)},
                            {"double", std::move(doubles)},
                            {"text", std::move(texts)},
                            {"value", std::move(values)}});
  }
  return threads(from_batches(batches));
}

// Returns the rows as texts, in which NaN equals NaN.
std::vector<std::string> texts_of(const Dataset& dataset) {
  std::vector<std::string> texts;
  for (const Row& row : dataset.take_all()) texts.push_back(to_json(row.value()));
  return texts;
}

// Runs `use` with a folder for temporary files, which must be used, and be empty at the end.
template <class Use>
void expect_on_disk(const Dataset& dataset, const Use& use) {
  const test_support::TemporaryDirectory disk;
  const test_support::TemporaryFilesIn here(disk);
  use();
  EXPECT_TRUE(std::filesystem::is_empty(disk.path()));
  bool was_on_disk = false;
  for ([[maybe_unused]] const Batch& batch : dataset.iter_batches({.batch_size = 10})) {
    if (std::filesystem::is_empty(disk.path())) continue;
    was_on_disk = true;
    break;
  }
  EXPECT_TRUE(was_on_disk);
  EXPECT_TRUE(std::filesystem::is_empty(disk.path())) << "a loop that is left leaves nothing behind";
  EXPECT_LE(dataset.stats()->peak_bytes, kLittle);
}

TEST(GroupBy, BeyondTheMemoryLimitGoesToDisk) {
  const std::vector<Aggregate> all = {
      count(),       sum("value"),  mean("value"),   std("value"),           min("text"),
      max("number"), sum("number"), median("value"), quantile("value", 0.9), count_distinct("text")};
  const Dataset rows = random_rows(60000, 20000, 1);
  const Dataset little = with_little_memory(rows);
  for (const std::vector<std::string>& keys :
       std::vector<std::vector<std::string>>{{"number"}, {"text"}, {"double", "number"}}) {
    const Dataset groups = little.groupby(keys).aggregate(all);
    expect_on_disk(groups, [&] { EXPECT_EQ(texts_of(groups), texts_of(rows.groupby(keys).aggregate(all))); });
    EXPECT_EQ(groups.stats()->operators.back().name, "groupby");
  }
}

TEST(GroupBy, OfMillionsOfGroupsStaysWithinTheMemoryLimit) {
  const Dataset groups = with_little_memory(range(400000)).groupby("id").aggregate({count(), sum("id")});
  std::int64_t expected = 0;
  for (const Batch& batch : groups.iter_batches({.batch_size = 10000})) {
    for (const std::int64_t id : batch.values<std::int64_t>("id")) ASSERT_EQ(id, expected++);
    EXPECT_EQ(batch.to_vector<std::int64_t>("sum(id)"), batch.to_vector<std::int64_t>("id"));
  }
  EXPECT_EQ(expected, 400000);
  EXPECT_LE(groups.stats()->peak_bytes, kLittle);
  EXPECT_EQ(groups.stats()->operators.back().rows, 400000);
}

TEST(GroupBy, PutsValuesOfFewGroupsOnDisk) {
  const Dataset rows = random_rows(200000, 40, 2);
  const std::vector<Aggregate> kept = {median("value"), count_distinct("value"), mean("value"),
                                       quantile("double", 0.25)};
  const Dataset groups = with_little_memory(rows).groupby("number").aggregate(kept, {.ignore_nan = true});
  const test_support::TemporaryDirectory disk;
  const test_support::TemporaryFilesIn here(disk);
  EXPECT_EQ(texts_of(groups), texts_of(rows.groupby("number").aggregate(kept, {.ignore_nan = true})));
  EXPECT_TRUE(std::filesystem::is_empty(disk.path()));
  EXPECT_LE(groups.stats()->peak_bytes, kLittle);
}

TEST(GroupBy, RefusesValuesOfOneGroupBeyondTheMemoryLimit) {
  const Dataset rows = with_little_memory(range(1000000)).map_batches(fn<with_one_key>);
  EXPECT_THAT(message_of<MemoryLimitError>([&] { rows.groupby("key").median("id").take_all(); }),
              AllOf(HasSubstr("quantile and count_distinct keep of one group"), HasSubstr("random_sample")));
}

TEST(Unique, BeyondTheMemoryLimitIsTheSame) {
  const Dataset rows = random_rows(100000, 50000, 3);
  EXPECT_EQ(with_little_memory(rows).unique("text"), rows.unique("text"));
}

class JoinBeyondMemory : public ::testing::TestWithParam<JoinType> {};

TEST_P(JoinBeyondMemory, GoesToDisk) {
  const Dataset left = random_rows(30000, 40000, 4).select_columns({"number", "text"});
  const Dataset right = random_rows(60000, 40000, 5).select_columns({"number", "value"});
  const Dataset joined = with_little_memory(left).join(right, GetParam(), {.on = {"number"}});
  expect_on_disk(joined,
                 [&] { EXPECT_EQ(texts_of(joined), texts_of(left.join(right, GetParam(), {.on = {"number"}}))); });
  EXPECT_EQ(joined.schema(), left.join(right, GetParam(), {.on = {"number"}}).schema());
}

INSTANTIATE_TEST_SUITE_P(Types, JoinBeyondMemory,
                         ::testing::Values(JoinType::inner, JoinType::left_outer, JoinType::right_outer,
                                           JoinType::full_outer, JoinType::left_semi, JoinType::right_semi,
                                           JoinType::left_anti, JoinType::right_anti));

TEST(Join, BeyondTheMemoryLimitComparesKeysAsInMemory) {
  // Nulls equal nothing, NaN is NaN, and 0 is -0; dictionaries are like their values.
  const auto keys = [](std::int64_t copies) {
    std::string rows = "[";
    for (std::int64_t i = 0; i < copies; ++i) {
      const std::string id = std::to_string(i);
      rows += (i == 0 ? "" : ",");
      rows += R"({"a": null, "b": "x", "i": )" + id + R"(}, {"a": 0, "b": "y)" + std::to_string(i % 100) +
              R"(", "i": )" + id + R"(}, {"a": -0.0, "b": null, "i": )" + id + "}";
    }
    return rows + "]";
  };
  const Dataset left = from_json(
      {arrow::field("a", arrow::float64()), arrow::field("b", arrow::utf8()), arrow::field("i", arrow::int64())},
      keys(500));
  const Dataset right = from_json(
      {arrow::field("a", arrow::float64()), arrow::field("b", arrow::dictionary(arrow::int32(), arrow::utf8())),
       arrow::field("i", arrow::int64())},
      keys(12000));
  const JoinOptions options{.on = {"a", "b"}, .right_suffix = "_right"};
  EXPECT_EQ(texts_of(with_little_memory(left).join(right, JoinType::full_outer, options)),
            texts_of(left.join(right, JoinType::full_outer, options)));
}

TEST(Join, BeyondTheMemoryLimitOfADatasetWithoutRows) {
  const Dataset right = random_rows(60000, 40000, 6);
  const Dataset none = with_little_memory(right).map_batches(fn<unchanged_rows>).filter(column("number") < 0);
  EXPECT_TRUE(none.join(right, JoinType::inner, {.on = {"number"}}).take_all().empty());
  EXPECT_EQ(texts_of(none.join(right, JoinType::right_outer, {.on = {"number"}}).select_columns({"value"})),
            texts_of(right.select_columns({"value"})));
}

TEST(Join, RefusesRightRowsWithOneKeyBeyondTheMemoryLimit) {
  const Dataset rows = with_little_memory(range(1000000)).map_batches(fn<with_one_key>);
  EXPECT_THAT(message_of<MemoryLimitError>([&] {
                rows.limit(3).join(rows, JoinType::inner, {.on = {"key"}, .right_suffix = "_right"}).count();
              }),
              AllOf(HasSubstr("the rows with equal keys that join holds in memory"), HasSubstr("with the same key")));
}

// ---- Parts

TEST(HashOfKeys, IsEqualForEqualKeys) {
  const Dataset rows = from_json(
      {arrow::field("a", arrow::float64()), arrow::field("b", arrow::large_utf8()), arrow::field("c", arrow::boolean()),
       arrow::field("d", arrow::null()), arrow::field("e", arrow::decimal128(9, 2)),
       arrow::field("f", arrow::date32())},
      R"([{"a": 0, "b": "x", "c": true, "e": "1.00", "f": 3}, {"a": -0.0, "b": "x", "c": true, "e": "1.00", "f": 3},
          {"a": 0, "b": "y", "c": true, "e": "1.00", "f": 3}, {"a": 0, "b": "x", "c": null, "e": "1.00", "f": 3},
          {"a": 0, "b": "x", "c": true, "e": "2.00", "f": 3}, {"a": 0, "b": "x", "c": true, "e": "1.00", "f": 4},
          {"a": null, "b": "x", "c": true, "e": "1.00", "f": 3}])");
  const Batch batch = rows.take_batch(7);
  const Names names = batch.columns();
  const std::vector<std::uint64_t> hashes = hash_keys(key_columns(batch.arrow(), names), 1);
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_EQ(std::set(hashes.begin(), hashes.end()).size(), 6U);
  EXPECT_NE(hash_keys(key_columns(batch.arrow(), names), 2)[0], hashes[0]);
  const Batch rest = batch.slice(1, 6);
  const std::vector<std::uint64_t> of_rest = hash_keys(key_columns(rest.arrow(), names), 1);
  EXPECT_TRUE(std::ranges::equal(of_rest, std::span(hashes).subspan(1))) << "wherever the row is in its array";
}

TEST(RowsOnDisk, ComeBackInTheirOrder) {
  Partitions parts(0, arrow::default_memory_pool());
  std::vector<std::uint64_t> hashes;
  std::int64_t at = 0;
  const Dataset rows = random_rows(12000, 100, 7);
  for (const Batch& batch : rows.iter_batches({.batch_size = 1000})) {
    hashes.clear();
    for (std::int64_t row = 0; row < batch.num_rows(); ++row) hashes.push_back(static_cast<std::uint64_t>(row % 3));
    parts.add(numbered(batch.arrow(), "row", at), hashes);
    at += batch.num_rows();
  }
  for (std::size_t part = 0; part < Partitions::kCount; ++part) {
    const auto stream = parts.take(part);
    std::vector<std::int64_t> found;
    while (const auto block = stream->next()) {
      const Batch batch(*block);
      for (const std::int64_t row : batch.values<std::int64_t>("row")) found.push_back(row);
    }
    std::vector<std::int64_t> expected;
    for (std::int64_t row = 0; row < at; ++row) {
      if (row % 1000 % 3 == static_cast<std::int64_t>(part)) expected.push_back(row);
    }
    EXPECT_EQ(found, expected);
  }
}

}  // namespace
}  // namespace cadre::data
