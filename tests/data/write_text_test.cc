// CSV and JSON files that a dataset writes.
#include <arrow/array.h>
#include <arrow/json/from_string.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "cadre/data.h"
#include "small_datasets.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::data {
namespace {

namespace fs = std::filesystem;
using test_support::message_of;
using test_support::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string content_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

Dataset some_rows() {
  return threads(from_rows({{{"id", 1}, {"text", "a \"b\", c"}, {"number", 0.5}},
                            {{"id", 2}, {"text", ""}, {"number", Value()}},
                            {{"id", Value()}, {"text", Value()}, {"number", -1.0}}}));
}

Batch fails_to_write(const Batch&) { throw std::runtime_error("no rows"); }
Batch same_written(const Batch& batch) { return batch; }

TEST(WriteCsv, IsReadAgain) {
  const TemporaryDirectory directory;
  const auto files = some_rows().write_csv(directory / "rows");
  EXPECT_THAT(files, ElementsAre(directory / "rows" / "part_000000.csv"));
  EXPECT_EQ(content_of(files.front()), "\"id\",\"text\",\"number\"\n1,\"a \"\"b\"\", c\",0.5\n2,\"\",\n,,-1\n");
  const std::vector<Row> rows = threads(read_csv(directory / "rows")).take_all();
  EXPECT_EQ(rows.front(), (Row{{"id", 1}, {"text", "a \"b\", c"}, {"number", 0.5}}));
  EXPECT_THAT(rows, SizeIs(3));
}

TEST(WriteCsv, IsReadAgainWithNullsNanAndTextsThatLookLikeThem) {
  const TemporaryDirectory directory;
  const Dataset rows = from_json(
      {arrow::field("x", arrow::float64()), arrow::field("t", arrow::utf8()), arrow::field("n", arrow::int64())},
      R"([{"x": NaN, "t": "NA", "n": 1}, {"x": null, "t": null, "n": null},
                    {"x": -Inf, "t": "", "n": 2}, {"x": 0.5, "t": "nan", "n": 3}])");
  rows.write_csv(directory / "rows");
  const Batch again = threads(read_csv(directory / "rows")).take_batch();
  EXPECT_TRUE(std::isnan(again.value("x", 0).get<double>()));
  EXPECT_TRUE(again.is_null("x", 1));
  EXPECT_EQ(again.value("x", 2), Value(-std::numeric_limits<double>::infinity()));
  const std::vector<std::string> others{"t", "n"};
  EXPECT_EQ(threads(read_csv(directory / "rows")).select_columns(others).take_all(),
            rows.select_columns(others).take_all());
}

TEST(WriteCsv, OfOneColumnIsReadAgainWithItsNulls) {
  const TemporaryDirectory directory;
  const Dataset numbers =
      from_json({arrow::field("n", arrow::int64())}, R"([{"n": null}, {"n": 1}, {"n": null}, {"n": 2}, {"n": null}])");
  numbers.write_csv(directory / "numbers");
  EXPECT_EQ(threads(read_csv(directory / "numbers")).take_all(), numbers.take_all());
  EXPECT_EQ(threads(read_csv(directory / "numbers")).count(), 5);
  numbers.write_csv(directory / "headless", {.include_header = false});
  EXPECT_EQ(threads(read_csv(directory / "headless", {.column_names = {"n"}})).take_all(), numbers.take_all());
  const Dataset texts = from_json({arrow::field("t", arrow::utf8())}, R"([{"t": "a"}, {"t": null}, {"t": ""}])");
  texts.write_csv(directory / "texts");
  EXPECT_EQ(threads(read_csv(directory / "texts")).take_all(), texts.take_all());
}

TEST(WriteCsv, HasDelimitersHeadersAndFilesAsAsked) {
  const TemporaryDirectory directory;
  const auto files =
      threads(range(5))
          .zip({range(5)})
          .write_csv(directory / "rows", {.max_rows_per_file = 2, .delimiter = ';', .include_header = false});
  ASSERT_THAT(files, SizeIs(3));
  EXPECT_EQ(content_of(files[0]), "0;0\n1;1\n");
  EXPECT_EQ(content_of(files[2]), "4;4\n");
}

TEST(WriteCsv, WritesDictionariesAsTheirValues) {
  const TemporaryDirectory directory;
  const auto array =
      arrow::json::ArrayFromJSONString(arrow::dictionary(arrow::int8(), arrow::utf8()), R"(["x", null])").ValueOrDie();
  const auto files = threads(from_batches({Batch{{"a", Column(array)}}})).write_csv(directory / "rows");
  EXPECT_EQ(content_of(files.front()), "\"a\"\n\"x\"\n\n");
}

TEST(WriteCsv, OfNoRowsHasTheHeader) {
  const TemporaryDirectory directory;
  EXPECT_EQ(content_of(threads(range(0)).write_csv(directory / "rows").front()), "\"id\"\n");
}

TEST(WriteCsv, RefusesTypesWithoutATextFormBeforeAnythingRuns) {
  const TemporaryDirectory directory;
  const auto lists = arrow::json::ArrayFromJSONString(arrow::list(arrow::int64()), "[[1], [2]]").ValueOrDie();
  const Dataset rows = threads(from_batches({Batch{{"a", std::vector<int>{1, 2}}, {"list", Column(lists)}}}));
  EXPECT_THAT(message_of<InvalidArgument>([&] { rows.write_csv(directory / "never"); }),
              AllOf(HasSubstr("write_csv cannot write the column \"list\""), HasSubstr("list<item: int64>")));
  EXPECT_FALSE(fs::exists(directory / "never"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { rows.map_batches(fn<same_written>).write_csv(directory / "empty"); }),
              HasSubstr("the column \"list\""));
  EXPECT_TRUE(fs::is_empty(directory / "empty"));
  EXPECT_THAT(message_of<InvalidArgument>(
                  [&] { rows.write_csv(directory / "never", {.max_rows_per_file = 0, .delimiter = '"'}); }),
              AllOf(HasSubstr("max_rows_per_file is 0"), HasSubstr("delimiter is a quote")));
}

TEST(WriteCsv, RefusesRowsWithoutColumns) {
  const TemporaryDirectory directory;
  EXPECT_THAT(message_of<InvalidArgument>([&] { threads(range(2)).select_columns({}).write_csv(directory / "rows"); }),
              HasSubstr("write_csv cannot write rows without columns"));
}

TEST(WriteJson, IsReadAgain) {
  const TemporaryDirectory directory;
  const auto files = some_rows().write_json(directory / "rows");
  EXPECT_THAT(files, ElementsAre(directory / "rows" / "part_000000.json"));
  EXPECT_EQ(content_of(files.front()),
            "{\"id\": 1, \"text\": \"a \\\"b\\\", c\", \"number\": 0.5}\n"
            "{\"id\": 2, \"text\": \"\", \"number\": null}\n"
            "{\"id\": null, \"text\": null, \"number\": -1.0}\n");
  EXPECT_EQ(threads(read_json(directory / "rows")).take_all(), some_rows().take_all());
}

TEST(WriteJson, HasNullsForNanAndInfinities) {
  const TemporaryDirectory directory;
  const double inf = std::numeric_limits<double>::infinity();
  const auto lists =
      arrow::json::ArrayFromJSONString(arrow::list(arrow::float64()), "[[1.5, NaN], [-Inf]]").ValueOrDie();
  const Dataset rows =
      threads(from_batches({Batch{{"a", std::vector<double>{std::nan(""), -inf}}, {"list", Column(lists)}}}));
  EXPECT_EQ(content_of(rows.write_json(directory / "rows").front()),
            "{\"a\": null, \"list\": [1.5, null]}\n{\"a\": null, \"list\": [null]}\n");
}

TEST(WriteJson, WritesRowsWithoutColumns) {
  const TemporaryDirectory directory;
  EXPECT_EQ(content_of(threads(range(2)).select_columns({}).write_json(directory / "rows").front()), "{}\n{}\n");
}

TEST(WriteText, LeavesNothingThatIsNotWhole) {
  const TemporaryDirectory directory;
  EXPECT_THROW(threads(range(3)).map_batches(fn<fails_to_write>).write_csv(directory / "csv"), DatasetError);
  EXPECT_THROW(threads(range(3)).map_batches(fn<fails_to_write>).write_json(directory / "json"), DatasetError);
  EXPECT_TRUE(fs::is_empty(directory / "csv"));
  EXPECT_TRUE(fs::is_empty(directory / "json"));
}

TEST(WriteText, IsOnlyDoneIntoAFolderWithoutSuchFiles) {
  const TemporaryDirectory directory;
  range(3).write_csv(directory / "rows");
  range(3).write_json(directory / "rows");
  EXPECT_THAT(message_of<InvalidArgument>([&] { range(3).write_csv(directory / "rows"); }),
              HasSubstr("which has CSV files already (part_000000.csv)"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { range(3).write_json(directory / "rows"); }),
              HasSubstr("which has JSON files already (part_000000.json)"));
}

}  // namespace
}  // namespace cadre::data
