// Columns of types other than numbers and texts: as values, in conditions and in aggregates.
#include <arrow/io/file.h>
#include <arrow/json/from_string.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <parquet/arrow/writer.h>

#include <cmath>

#include "cadre/data.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::data {
namespace {

using test_support::message_of;
using test_support::TemporaryDirectory;
using ::testing::HasSubstr;

using Columns = std::vector<std::tuple<std::string, std::shared_ptr<arrow::DataType>, std::string>>;

std::shared_ptr<arrow::Table> table_of(const Columns& columns) {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const auto& [name, type, values] : columns) {
    fields.push_back(arrow::field(name, type));
    arrays.push_back(arrow::json::ArrayFromJSONString(type, values).ValueOrDie());
  }
  return arrow::Table::Make(arrow::schema(fields), arrays);
}

Dataset dataset_of(const Columns& columns) {
  return from_arrow(table_of(columns)).with_options({.function_place = FunctionPlace::threads});
}

void write(const arrow::Table& table, const std::filesystem::path& file) {
  const auto stream = arrow::io::FileOutputStream::Open(file).ValueOrDie();
  ASSERT_TRUE(parquet::arrow::WriteTable(table, arrow::default_memory_pool(), stream, 2).ok());
  ASSERT_TRUE(stream->Close().ok());
}

TEST(ColumnTypes, AreValuesThatReadWell) {
  const Dataset rows = dataset_of(
      {{"point", arrow::struct_({arrow::field("x", arrow::int32()), arrow::field("name", arrow::utf8())}),
        R"([{"x": 1, "name": "a"}, null])"},
       {"points", arrow::list(arrow::struct_({arrow::field("x", arrow::int32())})), R"([[{"x": 1}, {"x": null}], []])"},
       {"map", arrow::map(arrow::utf8(), arrow::int64()), R"([[["k", 1]], null])"},
       {"kind", arrow::dictionary(arrow::int8(), arrow::utf8()), R"(["b", null])"},
       {"half", arrow::float16(), "[1.5, null]"},
       {"day", arrow::date32(), "[19724, null]"},
       {"time", arrow::timestamp(arrow::TimeUnit::SECOND), R"(["2024-01-02 03:04:05", null])"},
       {"long", arrow::duration(arrow::TimeUnit::MILLI), "[3000, null]"},
       {"price", arrow::decimal128(5, 2), R"(["1.25", null])"}});
  const std::vector<Row> expected{{{"point", {{"x", 1}, {"name", "a"}}},
                                   {"points", list(Dict{{"x", 1}}, Dict{{"x", Value()}})},
                                   {"map", list(Dict{{"key", "k"}, {"value", 1}})},
                                   {"kind", "b"},
                                   {"half", 1.5},
                                   {"day", "2024-01-02"},
                                   {"time", "2024-01-02 03:04:05"},
                                   {"long", 3000},
                                   {"price", "1.25"}},
                                  {{"point", Value()},
                                   {"points", List{}},
                                   {"map", Value()},
                                   {"kind", Value()},
                                   {"half", Value()},
                                   {"day", Value()},
                                   {"time", Value()},
                                   {"long", Value()},
                                   {"price", Value()}}};
  EXPECT_EQ(rows.take_all(), expected);
}

Row same(const Row& row) { return row; }

TEST(ColumnTypes, OfNestedRowsComeBackFromAFunctionOfRows) {
  const Dataset rows = dataset_of(
      {{"point", arrow::struct_({arrow::field("x", arrow::int64()), arrow::field("y", arrow::list(arrow::int64()))}),
        R"([{"x": 1, "y": [1, 2]}, null, {"x": null, "y": []}])"}});
  EXPECT_EQ(rows.map(fn<same>).take_all(), rows.take_all());
  EXPECT_EQ(rows.map(fn<same>).schema().fields.front().type, "struct<x: int64, y: list<item: int64>>");
  const std::vector<Row> mixed{{{"a", {{"x", 1}}}}, {{"a", {{"x", "one"}}}}};
  EXPECT_THAT(message_of<InvalidArgument>([&] { to_batch(mixed); }), HasSubstr("column \"a.x\": row 1 has \"one\""));
}

class ConditionsOnTypes : public ::testing::Test {
 protected:
  ConditionsOnTypes() {
    write(*table_of({{"day", arrow::date32(), "[19723, 19724, 19725, null]"},
                     {"time", arrow::timestamp(arrow::TimeUnit::MICRO),
                      R"(["2024-01-01", "2024-01-02 03:04:05", "2024-01-03", null])"},
                     {"zoned", arrow::timestamp(arrow::TimeUnit::MILLI, "UTC"),
                      R"(["2024-01-01T00:00:00Z", "2024-01-02T03:04:05Z", "2024-01-03T00:00:00Z", null])"},
                     {"hour", arrow::time32(arrow::TimeUnit::SECOND), "[3600, 7200, 10800, null]"},
                     {"price", arrow::decimal128(10, 2), R"(["-1.25", "2.50", "3.00", null])"},
                     {"large", arrow::uint64(), "[0, 5, 18446744073709551615, null]"},
                     {"kind", arrow::dictionary(arrow::int32(), arrow::utf8()), R"(["a", "b", "a", null])"}}),
          directory_ / "a.parquet");
  }
  std::int64_t count(const Expression& condition) const {
    const Dataset rows =
        read_parquet((directory_ / "a.parquet").string()).with_options({.function_place = FunctionPlace::threads});
    // In the read, by statistics and by row; and after a function, where there are no statistics.
    const std::int64_t pushed = rows.filter(condition).count();
    EXPECT_EQ(rows.map_batches(fn<same_batch>).filter(condition).count(), pushed);
    return pushed;
  }
  static Batch same_batch(const Batch& batch) { return batch; }

  TemporaryDirectory directory_;
};

TEST_F(ConditionsOnTypes, TakeTextsForDatesAndTimes) {
  EXPECT_EQ(count(column("day") >= "2024-01-02"), 2);
  EXPECT_EQ(count(column("time") == "2024-01-02 03:04:05"), 1);
  EXPECT_EQ(count(column("time") < "2024-01-02"), 1);
  EXPECT_EQ(count("2024-01-02" < column("time")), 2);
  EXPECT_EQ(count(column("zoned") > "2024-01-02 03:04:05Z"), 1);
  EXPECT_EQ(count(column("hour") >= "02:00:00"), 2);
  EXPECT_THAT(message_of<Error>([&] { count(column("day") > "yesterday"); }),
              testing::AllOf(HasSubstr("date32[day]"), HasSubstr("yesterday")));
}

TEST_F(ConditionsOnTypes, TakeNumbersAndTextsForDecimals) {
  EXPECT_EQ(count(column("price") > 0), 2);
  EXPECT_EQ(count(column("price") == 2.5), 1);
  EXPECT_EQ(count(column("price") >= "2.50"), 2);
}

TEST_F(ConditionsOnTypes, TakeUnsignedNumbersOf64Bits) {
  EXPECT_EQ(count(column("large") > 4), 2);
  EXPECT_EQ(count(column("large") == 0), 1);
  EXPECT_EQ(count(column("large") < 6), 2);
}

// Statistics omit NaN: for a row group with 1 and NaN they claim that all values are 1.
TEST_F(ConditionsOnTypes, KeepNanThatMeetsThem) {
  for (const auto& type : {arrow::float32(), arrow::float64()}) {
    const auto numbers = arrow::json::ArrayFromJSONString(type, "[1, NaN, 1, 5, null]").ValueOrDie();
    write(*arrow::Table::Make(arrow::schema({arrow::field("x", type)}), {numbers}), directory_ / "a.parquet");
    EXPECT_EQ(count(!(column("x") > 0)), 1);
    EXPECT_EQ(count(column("x") != 1), 2);
    EXPECT_EQ(count(column("x") == 5 || !(column("x") <= 5)), 2);
    EXPECT_EQ(count(is_nan(column("x"))), 1);
    EXPECT_EQ(count(column("x") > 0), 3);
  }
}

TEST_F(ConditionsOnTypes, TakeTextsForDictionaries) { EXPECT_EQ(count(column("kind") == "a"), 2); }

TEST(AggregatesOfTypes, HaveTheOrderOfTheType) {
  const Dataset rows =
      dataset_of({{"day", arrow::date32(), "[null, -5, 19724, 10]"},
                  {"price", arrow::decimal128(5, 2), R"(["10.00", "9.50", null, "-100.25"])"},
                  {"kind", arrow::dictionary(arrow::int8(), arrow::utf8()), R"(["b", "a", "c", null])"},
                  {"half", arrow::float16(), "[1.5, 2.5, null, 3.5]"}});
  const Dataset twice = rows.concat({rows.skip(1)});  // several blocks
  EXPECT_EQ(twice.min("day"), Value("1969-12-27"));
  EXPECT_EQ(twice.max("day"), Value("2024-01-02"));
  EXPECT_EQ(rows.min("price"), Value("-100.25"));
  EXPECT_EQ(rows.max("price"), Value("10.00"));
  EXPECT_EQ(rows.sum("price"), Value(-80.75));
  EXPECT_EQ(rows.min("kind"), Value("a"));
  EXPECT_EQ(rows.mean("half"), 2.5);
  EXPECT_EQ(rows.aggregate({count("day"), count("kind")}), (Row{{"count(day)", 3}, {"count(kind)", 3}}));
  EXPECT_THAT(message_of<InvalidArgument>([&] { rows.mean("day"); }), HasSubstr("the column is of date32[day]"));
}

TEST(FilesOfOthers, WithAColumnTwiceAreRefused) {
  const TemporaryDirectory directory;
  write(*table_of({{"a", arrow::int32(), "[1]"}, {"a", arrow::int32(), "[2]"}}), directory / "a.parquet");
  EXPECT_THAT(message_of<StorageError>([&] { read_parquet((directory / "a.parquet").string()).count(); }),
              testing::AllOf(HasSubstr("a.parquet"), HasSubstr("two columns \"a\"")));
  EXPECT_THAT(
      message_of<InvalidArgument>([&] { read_parquet((directory / "a.parquet").string(), {.columns = {"a", "a"}}); }),
      HasSubstr("the column \"a\" is there twice"));
}

}  // namespace
}  // namespace cadre::data
