// Quantiles, numbers of different values, and splits by them; tests/compat/data_distribution_test.py compares these
// with pandas.
#include "data/distribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "cadre/data/grouped_data.h"
#include "data/stratified_split.h"
#include "small_datasets.h"
#include "support/message_of.h"

namespace cadre::data {
namespace {

using test_support::message_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Dataset doubles(const std::vector<double>& values) {
  return threads(from_batches({Batch({{"x", std::vector<double>(values)}})}));
}

TEST(Quantile, IsInterpolatedBetweenTheValuesAround) {
  const Dataset four = doubles({7, 1, 3, 5});
  EXPECT_DOUBLE_EQ(four.median("x"), 4);
  EXPECT_DOUBLE_EQ(four.quantile("x", 0), 1);
  EXPECT_DOUBLE_EQ(four.quantile("x", 1), 7);
  EXPECT_DOUBLE_EQ(four.quantile("x", 0.1), 1.6);
  EXPECT_DOUBLE_EQ(doubles({5}).quantile("x", 0.3), 5);
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(doubles({infinity, infinity, 1}).quantile("x", 0.75), infinity);
}

TEST(Quantile, LeavesOutNullsAndNanAsAsked) {
  const Dataset rows = from_json({arrow::field("x", arrow::int32())}, R"([{"x": 4}, {"x": null}, {"x": 1}])");
  EXPECT_DOUBLE_EQ(rows.median("x"), 2.5);
  EXPECT_TRUE(rows.aggregate({median("x")}, {.ignore_nulls = false}).dict().front().second.is_null());
  EXPECT_TRUE(std::isnan(doubles({1, kNan, 2}).median("x")));
  EXPECT_DOUBLE_EQ(doubles({1, kNan, 2}).median("x", {.ignore_nan = true}), 1.5);
}

TEST(Quantile, OfGroupsHasAColumnForEach) {
  const Dataset rows =
      from_json({arrow::field("k", arrow::utf8()), arrow::field("x", arrow::float64())},
                R"([{"k": "b", "x": 1}, {"k": "a", "x": 5}, {"k": "b", "x": 2}, {"k": "c", "x": null}])");
  const Batch made = rows.groupby("k").aggregate({quantile("x", 0.25), median("x"), count_distinct("x")}).take_batch();
  EXPECT_THAT(made.columns(), ElementsAre("k", "quantile(x, 0.25)", "median(x)", "count_distinct(x)"));
  EXPECT_DOUBLE_EQ(made.value("quantile(x, 0.25)", 0).get<double>(), 1.25);
  EXPECT_DOUBLE_EQ(made.value("median(x)", 1).get<double>(), 5);
  EXPECT_TRUE(made.is_null("median(x)", 2));
  EXPECT_THAT(made.values<std::int64_t>("count_distinct(x)"), ElementsAre(2, 1, 0));
}

TEST(CountDistinct, CountsTextsAndNumbersWithoutNulls) {
  const Dataset rows = from_json({arrow::field("t", arrow::utf8()), arrow::field("n", arrow::null())},
                                 R"([{"t": "a"}, {"t": "b"}, {"t": null}, {"t": "a"}])");
  EXPECT_EQ(rows.count_distinct("t"), 2);
  EXPECT_EQ(rows.count_distinct("n"), 0);
  EXPECT_EQ(doubles({0., -0., kNan, kNan, 3}).count_distinct("x"), 3);
  EXPECT_EQ(doubles({0., -0., kNan, kNan, 3}).count_distinct("x", {.ignore_nan = true}), 2);
}

TEST(CountDistinct, HasNullAsOneMoreValueOnRequest) {
  const Dataset rows = from_json({arrow::field("t", arrow::utf8()), arrow::field("n", arrow::null())},
                                 R"([{"t": "a"}, {"t": null}, {"t": null}, {"t": "b"}])");
  EXPECT_EQ(rows.count_distinct("t", {.ignore_nulls = false}), 3);
  EXPECT_EQ(rows.count_distinct("n", {.ignore_nulls = false}), 1);
  EXPECT_EQ(rows.limit(1).count_distinct("t", {.ignore_nulls = false}), 1);
}

TEST(Distribution, SaysWhatIsWrongBeforeAnythingRuns) {
  const Dataset rows = doubles({1, 2});
  EXPECT_THAT(message_of<InvalidArgument>([&] { rows.quantile("x", 1.5); }),
              HasSubstr("q is 1.5; it must be from 0 to 1"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { rows.groupby("x").aggregate({quantile("x", kNan), median("")}); }),
              AllOf(HasSubstr("q is nan"), HasSubstr("median() needs a column")));
  EXPECT_THAT(message_of<InvalidArgument>(
                  [&] { from_json({arrow::field("t", arrow::utf8())}, R"([{"t": "a"}])").median("t"); }),
              HasSubstr("median(t) cannot be computed: the column is of string, which is no type of numbers"));
}

TEST(Distribution, StaysWithinTheMemoryLimit) {
  std::vector<double> many(200'000);
  std::iota(many.begin(), many.end(), 0);
  const Dataset rows = doubles(many).with_options(
      {.memory_limit_bytes = std::int64_t{1} << 20, .num_threads = 1, .function_place = FunctionPlace::threads});
  EXPECT_THAT(message_of<MemoryLimitError>([&] { rows.median("x"); }), HasSubstr("aggregate a sample of the rows"));
  EXPECT_THAT(message_of<MemoryLimitError>([&] { rows.count_distinct("x"); }), HasSubstr("memory_limit_bytes"));
}

TEST(StratifiedSplit, GivesEachClassItsShareWithinOneRow) {
  EXPECT_THAT(test_rows_of_classes({50, 30, 20}, 10), ElementsAre(5, 3, 2));
  EXPECT_THAT(test_rows_of_classes({5, 5, 5}, 4), ElementsAre(2, 1, 1));
  EXPECT_THAT(test_rows_of_classes({7, 90, 3}, 33), ElementsAre(2, 30, 1));
}

TEST(StratifiedSplit, HasARowOfEachClassInBothParts) {
  EXPECT_THAT(test_rows_of_classes({2, 98}, 10), ElementsAre(1, 9));
  EXPECT_THAT(test_rows_of_classes({2, 98}, 90), ElementsAre(1, 89));
  EXPECT_THAT(test_rows_of_classes({3, 2, 95}, 7), ElementsAre(1, 1, 5)) << "the exact shares are 0.21, 0.14 and 6.65";
  EXPECT_THAT(test_rows_of_classes({2, 2, 2, 2, 16}, 5), ElementsAre(1, 1, 1, 1, 1));
  EXPECT_THAT(test_rows_of_classes({2, 2, 2, 2, 16}, 19), ElementsAre(1, 1, 1, 1, 15));
}

Dataset classes(const std::vector<std::int64_t>& values) {
  std::vector<std::int64_t> rows(values.size());
  std::iota(rows.begin(), rows.end(), 0);
  return threads(from_batches({Batch({{"label", std::vector<std::int64_t>(values)}, {"row", std::move(rows)}})}));
}

std::vector<std::int64_t> rows_of(const Dataset& dataset) {
  return dataset.take_batch(1000).to_vector<std::int64_t>("row");
}

TEST(StratifiedSplit, HasTheLastRowsOfEachClassForTheTest) {
  const auto [train, test] = classes({0, 1, 0, 0, 1, 0, 1, 0, 1, 0}).train_test_split(0.4, {.stratify = "label"});
  EXPECT_THAT(rows_of(test), ElementsAre(6, 7, 8, 9));
  EXPECT_THAT(rows_of(train), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(train.columns(), ElementsAre("label", "row"));
  const auto [fewer, two] = classes({0, 1, 0, 0, 1, 0}).train_test_split(2, {.stratify = "label"});
  EXPECT_THAT(rows_of(two), ElementsAre(4, 5));
}

TEST(StratifiedSplit, OfShuffledRowsHasOtherRowsOfEachClass) {
  std::vector<std::int64_t> labels(200);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = i % 10 == 0 ? 1 : 0;
  const Dataset rows = classes(labels);
  const auto [train, test] = rows.train_test_split(0.25, {.shuffle = true, .seed = 3, .stratify = "label"});
  const auto of_test = rows_of(test);
  EXPECT_EQ(of_test.size(), 50U);
  EXPECT_EQ(std::ranges::count_if(of_test, [](std::int64_t row) { return row % 10 == 0; }), 5);
  std::set<std::int64_t> all(of_test.begin(), of_test.end());
  for (const std::int64_t row : rows_of(train)) all.insert(row);
  EXPECT_EQ(all.size(), 200U);
  EXPECT_NE(of_test, rows_of(rows.train_test_split(0.25, {.stratify = "label"}).second));
}

TEST(StratifiedSplit, SaysWhenAClassWouldBeMissing) {
  const auto message = [](const std::vector<std::int64_t>& labels, std::int64_t test_rows) {
    return message_of<InvalidArgument>([&] { classes(labels).train_test_split(test_rows, {.stratify = "label"}); });
  };
  EXPECT_THAT(message({0, 0, 1, 1, 2}, 3), AllOf(HasSubstr("column \"label\" has 3 different values"),
                                                 HasSubstr("the rarest of which is in 1 row(s)")));
  EXPECT_THAT(message({0, 0, 1, 1, 2, 2}, 2), HasSubstr("4 rows would be for training and 2 for the test"));
  EXPECT_THAT(message_of<InvalidArgument>([] { classes({0, 0, 1, 1}).train_test_split(0.5, {.stratify = "lable"}); }),
              HasSubstr("label"));
}

}  // namespace
}  // namespace cadre::data
