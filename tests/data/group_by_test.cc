// Dataset::groupby, and the different values of a column.
#include <arrow/array.h>
#include <arrow/json/from_string.h>
#include <arrow/scalar.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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
using ::testing::SizeIs;

Dataset trips() {
  return threads(from_rows({{{"city", "Bonn"}, {"day", 1}, {"fare", 4.0}},
                            {{"city", "Ulm"}, {"day", 1}, {"fare", 2.0}},
                            {{"city", "Bonn"}, {"day", 2}, {"fare", 8.0}},
                            {{"city", "Ulm"}, {"day", 1}, {"fare", Value()}},
                            {{"city", Value()}, {"day", 2}, {"fare", 1.0}}}));
}

TEST(GroupBy, HasARowForEachGroupInTheOrderOfFirstRows) {
  EXPECT_THAT(trips().groupby("city").mean("fare").take_all(),
              ElementsAre(Row{{"city", "Bonn"}, {"mean(fare)", 6.0}}, Row{{"city", "Ulm"}, {"mean(fare)", 2.0}},
                          Row{{"city", Value()}, {"mean(fare)", 1.0}}));
  EXPECT_THAT(
      trips().groupby({"day", "city"}).count().take_all(),
      ElementsAre(Row{{"day", 1}, {"city", "Bonn"}, {"count()", 1}}, Row{{"day", 1}, {"city", "Ulm"}, {"count()", 2}},
                  Row{{"day", 2}, {"city", "Bonn"}, {"count()", 1}},
                  Row{{"day", 2}, {"city", Value()}, {"count()", 1}}));
}

TEST(GroupBy, ComputesWhatAggregateComputes) {
  const std::vector<Aggregate> all = {count(),     count("fare"), sum("fare"), min("fare"),
                                      max("fare"), mean("fare"),  std("fare"), max("city")};
  for (const AggregateOptions& options :
       {AggregateOptions{}, AggregateOptions{.ignore_nulls = false}, AggregateOptions{.ignore_nan = true, .ddof = 0}}) {
    for (const Row& group : trips().groupby("day").aggregate(all, options).take_all()) {
      const Dataset rows = trips().filter(column("day") == group.get<std::int64_t>("day"));
      for (const auto& [name, value] : rows.aggregate(all, options)) EXPECT_EQ(group.at(name), value) << name;
    }
  }
}

TEST(GroupBy, KnowsItsColumnsBeforeItRuns) {
  const Dataset groups = from_json({arrow::field("key", arrow::dictionary(arrow::int8(), arrow::utf8())),
                                    arrow::field("a", arrow::int16()), arrow::field("b", arrow::float32()),
                                    arrow::field("c", arrow::date32())},
                                   "[]")
                             .groupby("key")
                             .aggregate({sum("a"), min("a"), max("b"), std("b"), max("c"), count("c")});
  EXPECT_EQ(groups.schema(), (Schema{{{"key", "string"},
                                      {"sum(a)", "int64"},
                                      {"min(a)", "int16"},
                                      {"max(b)", "float"},
                                      {"std(b)", "double"},
                                      {"max(c)", "date32[day]"},
                                      {"count(c)", "int64"}}}));
  EXPECT_THAT(groups.take_all(), IsEmpty());
}

TEST(GroupBy, OfEveryTypeHasTheTypesItHasAnnounced) {
  const Dataset rows = from_json(
      {arrow::field("key", arrow::dictionary(arrow::int8(), arrow::utf8())), arrow::field("a", arrow::uint64()),
       arrow::field("b", arrow::float32()), arrow::field("c", arrow::timestamp(arrow::TimeUnit::MICRO)),
       arrow::field("d", arrow::decimal128(4, 1)), arrow::field("e", arrow::boolean()),
       arrow::field("f", arrow::large_utf8()), arrow::field("g", arrow::null())},
      R"([["x", 18446744073709551615, 1.5, 5, "2.5", true, "m", null],
          ["y", null, null, null, null, null, null, null],
          ["x", 3, -1.5, 4, "-2.5", false, "k", null]])");
  std::vector<Aggregate> aggregates;
  for (const char* column : {"a", "b", "c", "d", "e", "f", "g"})
    aggregates.insert(aggregates.end(), {min(column), max(column)});
  aggregates.insert(aggregates.end(), {sum("d"), sum("e"), sum("g")});
  const Dataset groups = rows.groupby("key").aggregate(aggregates);
  const Batch batch = groups.take_batch();
  for (const Field& field : groups.schema().fields) EXPECT_EQ(batch.type(field.name), field.type) << field.name;
  EXPECT_EQ(batch.arrow()->GetColumnByName("max(a)")->GetScalar(0).ValueOrDie()->ToString(), "18446744073709551615");
  EXPECT_EQ(batch.value("min(b)", 0), Value(-1.5));
  EXPECT_EQ(batch.value("min(c)", 0), Value("1970-01-01 00:00:00.000004"));
  EXPECT_EQ(batch.value("min(d)", 0), Value("-2.5"));
  EXPECT_EQ(batch.value("max(e)", 0), Value(true));
  EXPECT_EQ(batch.value("max(f)", 0), Value("m"));
  EXPECT_EQ(batch.value("sum(d)", 0), Value(0.0));
  EXPECT_EQ(batch.value("sum(e)", 0), Value(1));
  for (const std::string& name : batch.columns()) EXPECT_EQ(batch.is_null(name, 1), name != "key") << name;
}

TEST(GroupBy, ReadsOnlyTheColumnsThatItUses) {
  const test_support::TemporaryDirectory directory;
  std::vector<std::string> texts(1000, std::string(1000, 'x'));
  from_batches({Batch{{"text", texts}, {"key", std::vector<std::int64_t>(1000, 7)}}}).write_parquet(directory / "rows");
  const Dataset groups = threads(read_parquet(directory / "rows")).groupby("key").count();
  EXPECT_THAT(groups.take_all(), ElementsAre(Row{{"key", 7}, {"count()", 1000}}));
  EXPECT_LT(groups.stats()->operators.front().bytes, 10000);  // the texts are a million
}

TEST(GroupBy, TakesNanForOneKeyAndBothZerosForOne) {
  const Dataset rows =
      threads(from_rows({{{"key", kNan}}, {{"key", 0.0}}, {{"key", -0.0}}, {{"key", -kNan}}, {{"key", Value()}}}));
  EXPECT_THAT(rows.groupby("key").count().take_all(),
              ElementsAre(Row{{"key", kNan}, {"count()", 2}}, Row{{"key", 0.0}, {"count()", 2}},
                          Row{{"key", Value()}, {"count()", 1}}));
}

TEST(GroupBy, OfManyBatchesIsExact) {
  const std::int64_t rows = 300000;
  std::vector<Batch> batches;
  for (std::int64_t at = 0; at < rows; at += 1000) {
    std::vector<std::int64_t> keys;
    std::vector<std::int64_t> numbers;
    for (std::int64_t row = at; row < at + 1000; ++row) {
      keys.push_back(row * 7919 % 1000);
      numbers.push_back((std::int64_t{1} << 53) + row);  // sums of doubles would be rounded
    }
    batches.push_back(Batch{{"key", std::move(keys)}, {"number", std::move(numbers)}});
  }
  const Dataset groups =
      threads(from_batches(batches)).groupby("key").aggregate({sum("number"), count(), max("number")});
  EXPECT_EQ(groups.count(), 1000);
  std::int64_t total = 0;
  for (const Row& group : groups.take_all()) {
    EXPECT_EQ(group.get<std::int64_t>("count()"), rows / 1000);
    std::int64_t sum = 0;
    std::int64_t max = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      if (row * 7919 % 1000 != group.get<std::int64_t>("key")) continue;
      sum += (std::int64_t{1} << 53) + row;
      max = (std::int64_t{1} << 53) + row;
    }
    EXPECT_EQ(group.get<std::int64_t>("sum(number)"), sum);
    EXPECT_EQ(group.get<std::int64_t>("max(number)"), max);
    if (++total == 20) break;  // the rest takes long
  }
}

TEST(GroupBy, FindsExtremesOfTextsInManyGroups) {
  std::vector<Batch> batches;
  for (std::int64_t at = 0; at < 200000; at += 5000) {
    std::vector<std::int64_t> keys;
    std::vector<std::string> texts;
    for (std::int64_t row = at; row < at + 5000; ++row) {
      keys.push_back(row % 3000);
      texts.push_back("text " + std::to_string(1000000 + row));
    }
    batches.push_back(Batch{{"key", std::move(keys)}, {"text", texts}});
  }
  for (const Row& group :
       threads(from_batches(batches)).groupby("key").aggregate({min("text"), max("text")}).take_all()) {
    const auto key = group.get<std::int64_t>("key");
    EXPECT_EQ(group.get<std::string>("min(text)"), "text " + std::to_string(1000000 + key));
    const std::int64_t last = key + 3000 * ((200000 - 1 - key) / 3000);
    EXPECT_EQ(group.get<std::string>("max(text)"), "text " + std::to_string(1000000 + last));
  }
}

TEST(GroupBy, WithoutAggregatesHasTheDifferentKeys) {
  EXPECT_THAT(trips().groupby("day").aggregate({}).take_all(), ElementsAre(Row{{"day", 1}}, Row{{"day", 2}}));
}

TEST(GroupBy, TravelsAsAValue) {
  const Dataset groups =
      Dataset(Value(range(10).groupby("id").aggregate({sum("id"), count()}, {.ignore_nulls = false, .ddof = 0})));
  EXPECT_THAT(groups.take(1), ElementsAre(Row{{"id", 0}, {"sum(id)", 0}, {"count()", 1}}));
}

TEST(GroupBy, RefusesWhatDoesNotFitBeforeAnythingRuns) {
  EXPECT_THAT(message_of<InvalidArgument>([] { trips().groupby("town").count().take(); }),
              AllOf(HasSubstr("has no column \"town\""), HasSubstr("city, day, fare")));
  EXPECT_THAT(message_of<InvalidArgument>([] { trips().groupby("city").sum("price").take(); }),
              HasSubstr("no column \"price\""));
  EXPECT_THAT(message_of<InvalidArgument>([] { trips().groupby("day").sum("city").take(); }),
              HasSubstr("sum(city) cannot be computed: the column is of string"));
  EXPECT_THAT(message_of<InvalidArgument>([] { trips().groupby(std::vector<std::string>{}); }),
              HasSubstr("at least one key column"));
  EXPECT_THAT(message_of<InvalidArgument>([] { trips().groupby({"day", "day"}); }),
              HasSubstr("\"day\" is there twice"));
  EXPECT_THAT(
      message_of<InvalidArgument>([] {
        trips().groupby("day").aggregate({sum("fare"), sum("fare"), {Aggregate::Kind::max, ""}}, {.ddof = -1});
      }),
      AllOf(HasSubstr("\"sum(fare)\" is there twice"), HasSubstr("ddof is -1"), HasSubstr("max() needs a column")));
  const Dataset named = trips().rename_columns({{"city", "sum(fare)"}});
  EXPECT_THAT(message_of<InvalidArgument>([&] { named.groupby("sum(fare)").sum("fare").take(); }),
              HasSubstr("two columns \"sum(fare)\""));
}

TEST(Aggregate, CountsRows) {
  EXPECT_EQ(trips().aggregate({count(), count("fare")}), (Row{{"count()", 5}, {"count(fare)", 4}}));
  EXPECT_EQ(threads(range(0)).aggregate({count()}), (Row{{"count()", 0}}));
}

// ---- map_groups

Batch describe(const Batch& group) {
  return Batch{{"city", Column(group.arrow()->GetColumnByName("city")->Slice(0, 1))},
               {"rows", std::vector<std::int64_t>{group.num_rows()}},
               {"first", std::vector<double>{group.is_null("fare", 0) ? -1 : group.arrow()->num_columns() * 1.0}}};
}

TEST(MapGroups, CallsTheFunctionOnceForEachGroupInTheOrderOfKeys) {
  EXPECT_THAT(trips().groupby("city").map_groups(fn<describe>).select_columns({"city", "rows"}).take_all(),
              ElementsAre(Row{{"city", "Bonn"}, {"rows", 2}}, Row{{"city", "Ulm"}, {"rows", 2}},
                          Row{{"city", Value()}, {"rows", 1}}));
}

Batch size_and_key(const Batch& group) {
  const auto keys = group.values<std::int64_t>("key");
  for (const std::int64_t key : keys) {
    if (key != keys.front()) throw std::runtime_error("two keys in a group");
  }
  const auto places = group.values<std::int64_t>("place");
  if (!std::is_sorted(places.begin(), places.end())) throw std::runtime_error("rows are not in their order");
  return Batch{{"key", std::vector<std::int64_t>{keys.front()}}, {"rows", std::vector<std::int64_t>{group.num_rows()}}};
}

TEST(MapGroups, JoinsGroupsOfManyBlocks) {
  std::vector<Batch> batches;
  for (std::int64_t at = 0; at < 100000; at += 500) {
    std::vector<std::int64_t> keys;
    std::vector<std::int64_t> places;
    for (std::int64_t row = at; row < at + 500; ++row) {
      keys.push_back(row % 100 < 50 ? 7 : row % 100);  // half of the rows have one key
      places.push_back(row);
    }
    batches.push_back(Batch{{"key", std::move(keys)}, {"place", std::move(places)}});
  }
  const Dataset groups = threads(from_batches(batches)).groupby("key").map_groups(fn<size_and_key>);
  const std::vector<Row> rows = groups.take_all();
  ASSERT_THAT(rows, SizeIs(51));
  EXPECT_EQ(rows.front(), (Row{{"key", 7}, {"rows", 50000}}));
  for (std::size_t i = 1; i < rows.size(); ++i)
    EXPECT_EQ(rows[i], (Row{{"key", static_cast<std::int64_t>(49 + i)}, {"rows", 1000}}));
}

Batch rows_of_group(const Batch& group) { return Batch{{"rows", std::vector<std::int64_t>{group.num_rows()}}}; }

TEST(MapGroups, TakesNanForOneKeyAndBothZerosForOne) {
  const Dataset rows = threads(from_rows({{{"key", 0.0}, {"second", "a"}},
                                          {{"key", kNan}, {"second", "a"}},
                                          {{"key", -0.0}, {"second", "a"}},
                                          {{"key", -kNan}, {"second", "a"}},
                                          {{"key", 0.0}, {"second", "a"}},
                                          {{"key", kNan}, {"second", "a"}}}));
  EXPECT_THAT(rows.groupby("key").map_groups(fn<rows_of_group>).take_all(),
              ElementsAre(Row{{"rows", 3}}, Row{{"rows", 3}}));
  EXPECT_THAT(rows.groupby({"second", "key"}).map_groups(fn<rows_of_group>).take_all(),
              ElementsAre(Row{{"rows", 3}}, Row{{"rows", 3}}));
}

TEST(MapGroups, RefusesAGroupThatDoesNotFitIntoTheMemoryLimit) {
  const Dataset rows =
      from_batches({Batch{{"key", std::vector<std::int64_t>(1000000)}, {"place", std::vector<std::int64_t>(1000000)}}})
          .with_options({.memory_limit_bytes = 1 << 20, .function_place = FunctionPlace::threads});
  EXPECT_THAT(message_of<MemoryLimitError>([&] { rows.groupby("key").map_groups(fn<size_and_key>).take(); }),
              HasSubstr("a group of map_groups takes more than"));
}

TEST(MapGroups, RefusesABatchSize) {
  EXPECT_NO_THROW(trips().groupby("city").map_groups(fn<describe>, {.num_gpus = 1})) << "a group is a batch";
  EXPECT_THAT(message_of<InvalidArgument>([] { trips().groupby("city").map_groups(fn<describe>, {.batch_size = 3}); }),
              HasSubstr("each group is one batch"));
}

// ---- unique

// Arrow's numbers of keys are not in this order.
TEST(Unique, OfManyRandomValuesHasTheOrderOfFirstOccurrence) {
  std::vector<std::int64_t> values;
  for (std::int64_t row = 0; row < 20000; ++row) values.push_back(row * row * 7919 % 10007 % 977);
  std::vector<Value> expected;
  for (const std::int64_t value : values) {
    if (std::ranges::find(expected, Value(value)) == expected.end()) expected.emplace_back(value);
  }
  const Batch batch{{"a", values}};
  EXPECT_EQ(threads(from_batches({batch})).unique("a"), expected);
  std::vector<Batch> parts;
  for (std::int64_t at = 0; at < batch.num_rows(); at += 100) parts.push_back(batch.slice(at, 100));
  EXPECT_EQ(threads(from_batches(parts)).unique("a"), expected);
}

TEST(Unique, HasEachValueOnceInTheOrderOfFirstOccurrence) {
  EXPECT_THAT(trips().unique("city"), ElementsAre("Bonn", "Ulm", Value()));
  EXPECT_THAT(trips().unique("city", true), ElementsAre("Bonn", "Ulm"));
  EXPECT_THAT(threads(range(0)).unique("id"), IsEmpty());
  EXPECT_THAT(threads(range(100000)).unique("id"), SizeIs(100000));
  EXPECT_THAT(message_of<InvalidArgument>([] { trips().unique("town"); }), HasSubstr("no column \"town\""));
}

}  // namespace
}  // namespace cadre::data
