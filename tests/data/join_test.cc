// Dataset::join and Dataset::zip.
#include <arrow/array.h>
#include <arrow/json/from_string.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <random>

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
using ::testing::SizeIs;

Batch same_joined(const Batch& batch) { return batch; }
Batch with_one_to_join(const Batch& batch) {
  return batch.with("one", std::vector<std::int64_t>(static_cast<std::size_t>(batch.num_rows()), 1));
}

Dataset people() {
  return threads(from_rows({{{"id", 1}, {"name", "Ann"}},
                            {{"id", 2}, {"name", "Ben"}},
                            {{"id", 2}, {"name", "Bob"}},
                            {{"id", Value()}, {"name", "Nil"}}}));
}
Dataset orders() {
  return threads(from_rows({{{"id", 2}, {"item", "book"}},
                            {{"id", 3}, {"item", "pen"}},
                            {{"id", Value()}, {"item", "none"}},
                            {{"id", 2}, {"item", "cup"}}}));
}

TEST(Join, InnerHasARowForEachPair) {
  EXPECT_THAT(
      people().join(orders(), JoinType::inner, {.on = {"id"}}).take_all(),
      ElementsAre(Row{{"id", 2}, {"name", "Ben"}, {"item", "book"}}, Row{{"id", 2}, {"name", "Ben"}, {"item", "cup"}},
                  Row{{"id", 2}, {"name", "Bob"}, {"item", "book"}}, Row{{"id", 2}, {"name", "Bob"}, {"item", "cup"}}));
}

TEST(Join, OuterHasNullsForMissingRows) {
  EXPECT_THAT(people().limit(2).join(orders().limit(2), JoinType::left_outer, {.on = {"id"}}).take_all(),
              ElementsAre(Row{{"id", 1}, {"name", "Ann"}, {"item", Value()}},
                          Row{{"id", 2}, {"name", "Ben"}, {"item", "book"}}));
  EXPECT_THAT(people().limit(2).join(orders().limit(2), JoinType::right_outer, {.on = {"id"}}).take_all(),
              ElementsAre(Row{{"name", "Ben"}, {"id", 2}, {"item", "book"}},
                          Row{{"name", Value()}, {"id", 3}, {"item", "pen"}}));
  EXPECT_THAT(
      people().limit(2).join(orders().limit(2), JoinType::full_outer, {.on = {"id"}}).take_all(),
      ElementsAre(Row{{"id", 1}, {"name", "Ann"}, {"item", Value()}}, Row{{"id", 2}, {"name", "Ben"}, {"item", "book"}},
                  Row{{"id", 3}, {"name", Value()}, {"item", "pen"}}));
}

TEST(Join, SemiAndAntiHaveTheRowsOfOneSide) {
  EXPECT_THAT(people().join(orders(), JoinType::left_semi, {.on = {"id"}}).take_all(),
              ElementsAre(Row{{"id", 2}, {"name", "Ben"}}, Row{{"id", 2}, {"name", "Bob"}}));
  EXPECT_THAT(people().join(orders(), JoinType::left_anti, {.on = {"id"}}).take_all(),
              ElementsAre(Row{{"id", 1}, {"name", "Ann"}}, Row{{"id", Value()}, {"name", "Nil"}}));
  EXPECT_THAT(people().join(orders(), JoinType::right_semi, {.on = {"id"}}).take_all(),
              ElementsAre(Row{{"id", 2}, {"item", "book"}}, Row{{"id", 2}, {"item", "cup"}}));
  EXPECT_THAT(people().join(orders(), JoinType::right_anti, {.on = {"id"}}).take_all(),
              ElementsAre(Row{{"id", 3}, {"item", "pen"}}, Row{{"id", Value()}, {"item", "none"}}));
}

TEST(Join, ComparesColumnsOfDifferentNames) {
  const Dataset named = orders().rename_columns({{"id", "person"}});
  const JoinOptions options{.on = {"id"}, .right_on = {"person"}};
  EXPECT_EQ(people().join(named, JoinType::inner, options).columns(), (std::vector<std::string>{"id", "name", "item"}));
  EXPECT_EQ(people().join(named, JoinType::right_outer, options).columns(),
            (std::vector<std::string>{"name", "person", "item"}));
  EXPECT_THAT(people().join(named, JoinType::full_outer, options).take_all().back(),
              (Row{{"id", Value()}, {"name", Value()}, {"item", "none"}}));
  EXPECT_THAT(people().join(named, JoinType::right_semi, options).take(1),
              ElementsAre(Row{{"person", 2}, {"item", "book"}}));
}

TEST(Join, GivesColumnsOfOneNameTheirSuffixes) {
  const Dataset left = people();
  const Dataset right = people().limit(1);
  EXPECT_THAT(left.join(right, JoinType::inner, {.on = {"id"}, .left_suffix = "_l", .right_suffix = "_r"}).take_all(),
              ElementsAre(Row{{"id", 1}, {"name_l", "Ann"}, {"name_r", "Ann"}}));
  EXPECT_EQ(left.join(right, JoinType::inner, {.on = {"id"}, .right_suffix = "_r"}).columns(),
            (std::vector<std::string>{"id", "name", "name_r"}));
  EXPECT_THAT(message_of<InvalidArgument>([&] { left.join(right, JoinType::inner, {.on = {"id"}}).take(); }),
              AllOf(HasSubstr("join makes two columns \"name\""), HasSubstr("left_suffix")));
  EXPECT_EQ(left.join(right, JoinType::left_semi, {.on = {"id"}}).count(), 1);  // has only one of them
}

TEST(Join, GivesALeftColumnWithTheNameOfARightKeyItsSuffix) {
  const Dataset named = orders().limit(1).rename_columns({{"id", "name"}});  // the key has the name of a left column
  const JoinOptions options{.on = {"id"}, .right_on = {"name"}, .left_suffix = "_l"};
  EXPECT_THAT(people().join(named, JoinType::right_outer, options).take_all(),
              ElementsAre(Row{{"name_l", "Ben"}, {"name", 2}, {"item", "book"}},
                          Row{{"name_l", "Bob"}, {"name", 2}, {"item", "book"}}));
  EXPECT_EQ(people().join(named, JoinType::inner, options).columns(), (std::vector<std::string>{"id", "name", "item"}));
  EXPECT_THAT(message_of<InvalidArgument>(
                  [&] { people().join(named, JoinType::right_outer, {.on = {"id"}, .right_on = {"name"}}).take(); }),
              HasSubstr("join makes two columns \"name\""));
}

TEST(Join, TakesNanForNanAndBothZerosForOne) {
  const Dataset left = threads(from_rows({{{"a", kNan}}, {{"a", 0.0}}, {{"a", Value()}}}));
  const Dataset right =
      threads(from_rows({{{"a", -0.0}, {"b", 1}}, {{"a", -kNan}, {"b", 2}}, {{"a", Value()}, {"b", 3}}}));
  EXPECT_THAT(left.join(right, JoinType::inner, {.on = {"a"}}).take_all(),
              ElementsAre(Row{{"a", kNan}, {"b", 2}}, Row{{"a", 0.0}, {"b", 1}}));
}

TEST(Join, ComparesDictionariesByTheirValues) {
  const Dataset left =
      from_json({arrow::field("a", arrow::dictionary(arrow::int8(), arrow::utf8()))}, R"([["x"], ["y"]])");
  const Dataset right =
      from_json({arrow::field("a", arrow::utf8()), arrow::field("b", arrow::int8())}, R"([["y", 1], ["z", 2]])");
  EXPECT_THAT(left.join(right, JoinType::full_outer, {.on = {"a"}}).take_all(),
              ElementsAre(Row{{"a", "x"}, {"b", Value()}}, Row{{"a", "y"}, {"b", 1}}, Row{{"a", "z"}, {"b", 2}}));
  EXPECT_EQ(left.join(right, JoinType::inner, {.on = {"a"}}).schema().fields.front(), left.schema().fields.front());
}

// Arrow's own join refuses these.
TEST(Join, CarriesListsAndTensorsOnBothSides) {
  const Dataset left = threads(
      from_batches({Batch{{"id", std::vector<int>{1, 2}}, {"image", Column(std::vector<float>{1, 2, 3, 4}, {2, 1})}}}));
  const Dataset right =
      from_json({arrow::field("id", arrow::int32()), arrow::field("list", arrow::list(arrow::int64()))},
                "[[2, [5, 6]], [3, []]]");
  const Batch joined = left.join(right, JoinType::full_outer, {.on = {"id"}}).take_batch();
  EXPECT_EQ(joined.value("id", 2), Value(3));
  EXPECT_EQ(joined.value("list", 1), Value(List{5, 6}));
  EXPECT_TRUE(joined.is_null("list", 0));
  EXPECT_TRUE(joined.is_null("image", 2));
  EXPECT_EQ(joined.type("image"), left.take_batch().type("image"));
  EXPECT_EQ(joined.slice(0, 2).values<float>("image")[3], 4);
  EXPECT_EQ(right.join(left, JoinType::left_outer, {.on = {"id"}}).take_batch().slice(0, 1).values<float>("image")[0],
            3);
}

std::optional<std::int64_t> to_number(const Value& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<std::int64_t>());
}

// Rows with the keys "a" and "b", some of them null, and a number.
Dataset random_rows(std::mt19937_64& random, const std::string& number) {
  std::vector<Row> rows;
  const auto key = [&] { return random() % 6 == 0 ? Value() : Value(static_cast<std::int64_t>(random() % 5)); };
  const std::uint64_t count = random() % 60;
  for (std::uint64_t row = 0; row < count; ++row)
    rows.push_back({{"a", key()}, {"b", key()}, {number, static_cast<std::int64_t>(row)}});
  std::vector<Batch> batches;
  const Batch all = to_batch(rows);
  if (rows.empty() || all.type("a") != "int64" || all.type("b") != "int64") return random_rows(random, number);
  for (std::int64_t at = 0; at < all.num_rows(); at += 7) batches.push_back(all.slice(at, 7));
  return threads(from_batches(batches));
}

// Compares with the definition of each join.
TEST(Join, OfRandomRowsHasEveryRowOnce) {
  using Pair = std::pair<std::optional<std::int64_t>, std::optional<std::int64_t>>;
  std::mt19937_64 random(5);
  for (int round = 0; round < 30; ++round) {
    const Dataset left = random_rows(random, "left");
    const Dataset right = random_rows(random, "right");
    const std::vector<Row> lefts = left.take_all();
    const std::vector<Row> rights = right.take_all();
    const auto matches = [](const Row& a, const Row& b) {
      return !a.at("a").is_null() && !a.at("b").is_null() && a.at("a") == b.at("a") && a.at("b") == b.at("b");
    };
    std::vector<Pair> pairs;
    std::vector<Pair> only_right;
    std::vector<Pair> with_left_alone;
    std::vector<std::int64_t> semi;
    for (const Row& a : lefts) {
      const auto place = to_number(a.at("left"));
      const std::size_t before = pairs.size();
      for (const Row& b : rights) {
        if (matches(a, b)) pairs.emplace_back(place, to_number(b.at("right")));
      }
      with_left_alone.insert(with_left_alone.end(), pairs.begin() + static_cast<std::ptrdiff_t>(before), pairs.end());
      if (pairs.size() > before) semi.push_back(*place);
      if (pairs.size() == before) with_left_alone.emplace_back(place, std::nullopt);
    }
    for (const Row& b : rights) {
      if (std::ranges::none_of(lefts, [&](const Row& a) { return matches(a, b); }))
        only_right.emplace_back(std::nullopt, to_number(b.at("right")));
    }
    const auto joined = [&](JoinType type) {
      std::vector<Pair> found;
      for (const Row& row : left.join(right, type, {.on = {"a", "b"}}).take_all())
        found.emplace_back(to_number(row.at("left")), to_number(row.at("right")));
      return found;
    };
    const auto plus = [](std::vector<Pair> a, const std::vector<Pair>& b) {
      a.insert(a.end(), b.begin(), b.end());
      return a;
    };
    EXPECT_EQ(joined(JoinType::inner), pairs);
    EXPECT_EQ(joined(JoinType::left_outer), with_left_alone);
    EXPECT_EQ(joined(JoinType::right_outer), plus(pairs, only_right));
    EXPECT_EQ(joined(JoinType::full_outer), plus(with_left_alone, only_right));
    std::vector<std::int64_t> found;
    for (const Row& row : left.join(right, JoinType::left_semi, {.on = {"a", "b"}}).take_all())
      found.push_back(row.get<std::int64_t>("left"));
    EXPECT_EQ(found, semi);
    EXPECT_EQ(left.join(right, JoinType::left_anti, {.on = {"a", "b"}}).count(),
              left.count() - static_cast<std::int64_t>(semi.size()));
  }
}

TEST(Join, OfManyPairsIsReturnedInParts) {
  const Dataset ones = threads(range(3000)).map_batches(fn<with_one_to_join>);
  const Dataset joined = ones.join(ones.rename_columns({{"id", "other"}}), JoinType::inner, {.on = {"one"}});
  EXPECT_EQ(joined.count(), 9000000);
  EXPECT_THAT(joined.skip(3000 * 5 + 7).take(1), ElementsAre(Row{{"id", 5}, {"one", 1}, {"other", 7}}));
}

TEST(Join, WithNothingIsNothingOrNulls) {
  const Dataset none = orders().filter(column("id") > 100);
  EXPECT_THAT(people().join(none, JoinType::inner, {.on = {"id"}}).take_all(), IsEmpty());
  EXPECT_THAT(none.join(people(), JoinType::inner, {.on = {"id"}}).take_all(), IsEmpty());
  EXPECT_THAT(people().join(none, JoinType::left_outer, {.on = {"id"}}).take(1),
              ElementsAre(Row{{"id", 1}, {"name", "Ann"}, {"item", Value()}}));
  EXPECT_THAT(none.join(people(), JoinType::full_outer, {.on = {"id"}}).take(1),
              ElementsAre(Row{{"id", 1}, {"item", Value()}, {"name", "Ann"}}));
  EXPECT_EQ(people().join(none, JoinType::left_anti, {.on = {"id"}}).count(), 4);
  EXPECT_EQ(none.join(none, JoinType::full_outer, {.on = {"id"}, .right_suffix = "_2"}).count(), 0);
}

TEST(Join, OfRowsThatAFunctionDoesNotReturnHasTheKeysOfTheOthers) {
  const Dataset unknown = orders().map_batches(fn<same_joined>).filter(column("id") > 100);
  EXPECT_THAT(people().join(unknown, JoinType::left_outer, {.on = {"id"}}).take(1),
              ElementsAre(Row{{"id", 1}, {"name", "Ann"}}));
  EXPECT_THAT(unknown.join(people(), JoinType::right_outer, {.on = {"id"}}).take(1),
              ElementsAre(Row{{"id", 1}, {"name", "Ann"}}));
  EXPECT_THAT(unknown.join(unknown, JoinType::full_outer, {.on = {"id"}}).take_all(), IsEmpty());
}

TEST(Join, OfRowsOfFunctionsIsTheSame) {
  const Dataset joined = people()
                             .map_batches(fn<same_joined>)
                             .join(orders().map_batches(fn<same_joined>), JoinType::inner, {.on = {"id"}});
  EXPECT_EQ(joined.take_all(), people().join(orders(), JoinType::inner, {.on = {"id"}}).take_all());
  EXPECT_EQ(joined.count(), 4);
}

TEST(Join, EndsWhereNoMoreRowsAreWanted) {
  const Dataset many = threads(range(10000000));
  EXPECT_THAT(many.join(range(10), JoinType::inner, {.on = {"id"}}).take(3), SizeIs(3));
}

TEST(Join, TravelsAsAValue) {
  const Dataset ids = range(5).join(range(3), JoinType::left_anti, {.on = {"id"}});
  EXPECT_THAT(Dataset(Value(ids)).take_all(), ElementsAre(Row{{"id", 3}}, Row{{"id", 4}}));
}

TEST(Join, RefusesWhatDoesNotFitBeforeAnythingRuns) {
  EXPECT_THAT(message_of<InvalidArgument>([] { people().join(orders(), JoinType::inner, {.on = {"key"}}).take(); }),
              AllOf(HasSubstr("the left dataset of join has no column \"key\""), HasSubstr("id, name")));
  EXPECT_THAT(message_of<InvalidArgument>(
                  [] { people().join(orders(), JoinType::inner, {.on = {"id"}, .right_on = {"key"}}).take(); }),
              HasSubstr("the right dataset of join has no column \"key\""));
  EXPECT_THAT(
      message_of<InvalidArgument>(
          [] { people().join(orders(), JoinType::inner, {.on = {"name"}, .right_on = {"id"}}).take(); }),
      HasSubstr("join cannot compare \"name\" of the left dataset, which is of string, with \"id\" of the right "
                "one, which is of int64"));
  EXPECT_THAT(message_of<InvalidArgument>([] { people().join(orders(), JoinType::inner, {}); }),
              HasSubstr("at least one key column in JoinOptions::on"));
  EXPECT_THAT(message_of<InvalidArgument>(
                  [] { people().join(orders(), JoinType::inner, {.on = {"id", "name"}, .right_on = {"id"}}); }),
              HasSubstr("JoinOptions::on has 2 columns, and right_on has 1"));
}

// ---- zip

TEST(Zip, PutsColumnsSideBySide) {
  const Dataset zipped = threads(range(3)).zip({range(3).rename_columns({{"id", "other"}})});
  EXPECT_THAT(zipped.take_all(),
              ElementsAre(Row{{"id", 0}, {"other", 0}}, Row{{"id", 1}, {"other", 1}}, Row{{"id", 2}, {"other", 2}}));
  EXPECT_EQ(zipped.count(), 3);
}

TEST(Zip, GivesNamesThatAreThereAlreadyASuffix) {
  EXPECT_EQ(range(5).zip({range(5), range(5)}).columns(), (std::vector<std::string>{"id", "id_1", "id_2"}));
}

TEST(Zip, OfDatasetsInDifferentBlocksKeepsTheRowsTogether) {
  const Dataset parts = range(100000).map_batches(fn<same_joined>, {.batch_size = 777});
  const Dataset zipped = threads(range(100000)).zip({parts}).filter(column("id") == column("id_1"));
  EXPECT_EQ(zipped.count(), 100000);
}

TEST(Zip, RefusesDifferentNumbersOfRows) {
  EXPECT_THAT(message_of<InvalidArgument>([] { threads(range(3)).zip({range(4)}).take(); }),
              HasSubstr("zip needs datasets with equally many rows: the first one has 3, and dataset 2 has 4"));
  const Dataset unknown = threads(range(5)).filter(column("id") > 2);
  EXPECT_THAT(message_of<InvalidArgument>([&] { threads(range(3)).zip({unknown}).take(); }),
              HasSubstr("dataset 2 has 2, and dataset 1 has more"));
}

TEST(Zip, TravelsAsAValue) {
  EXPECT_THAT(Dataset(Value(range(2).zip({range(2)}))).take(1), ElementsAre(Row{{"id", 0}, {"id_1", 0}}));
}

}  // namespace
}  // namespace cadre::data
