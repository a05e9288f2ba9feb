// Tables without rows, and rows without columns: from every source, through every operator.
#include <arrow/io/file.h>
#include <arrow/json/from_string.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <parquet/arrow/writer.h>

#include <algorithm>

#include "cadre/data.h"
#include "small_datasets.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::data {
namespace {

namespace fs = std::filesystem;
using test_support::message_of;
using test_support::TemporaryDirectory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::vector<Row> kThreeRowsWithoutColumns(3);

Batch same(const Batch& batch) { return batch; }
Row same_row(const Row& row) { return row; }
Row no_values(const Row&) { return {}; }
bool always(const Row&) { return true; }

class Same {
 public:
  Batch operator()(const Batch& batch) const { return batch; }
};

std::shared_ptr<arrow::Table> table_of(const std::string& ids) {
  const auto array = arrow::json::ArrayFromJSONString(arrow::int64(), ids).ValueOrDie();
  return arrow::Table::Make(arrow::schema({arrow::field("id", arrow::int64())}), {array});
}

// Writes as pyarrow does: a table without rows has one row group, which is empty.
void write(const fs::path& file, const std::string& ids) {
  fs::create_directories(file.parent_path());
  const auto stream = arrow::io::FileOutputStream::Open(file).ValueOrDie();
  ASSERT_TRUE(parquet::arrow::WriteTable(*table_of(ids), arrow::default_memory_pool(), stream).ok());
  ASSERT_TRUE(stream->Close().ok());
}

std::int64_t rows_in_batches(const Dataset& dataset, const IterBatchesOptions& options = {}) {
  std::int64_t rows = 0;
  for (const Batch& batch : dataset.iter_batches(options)) rows += batch.num_rows();
  return rows;
}

// Expects a dataset of `rows` rows without columns to answer every call.
void expect_only_rows(const Dataset& dataset, std::int64_t rows) {
  EXPECT_EQ(dataset.count(), rows);
  EXPECT_THAT(dataset.columns(), IsEmpty());
  EXPECT_THAT(dataset.take_all(), SizeIs(rows));
  EXPECT_THAT(dataset.take(2), SizeIs(std::min<std::int64_t>(rows, 2)));
  EXPECT_EQ(dataset.size_bytes(), 0);
  EXPECT_EQ(dataset.materialize().count(), rows);
  EXPECT_EQ(rows_in_batches(dataset), rows);
  EXPECT_EQ(rows_in_batches(dataset, {.batch_size = 2, .local_shuffle_buffer_size = 2}), rows);
  EXPECT_THAT(dataset.limit(1).take_all(), SizeIs(std::min<std::int64_t>(rows, 1)));
  EXPECT_THAT(dataset.skip(1).take_all(), SizeIs(std::max<std::int64_t>(rows - 1, 0)));
  EXPECT_THAT(dataset.concat({dataset}).take_all(), SizeIs(2 * rows));
  EXPECT_THAT(dataset.random_shuffle(1).take_all(), SizeIs(rows));
  EXPECT_THAT(dataset.random_shuffle(1).limit(2).take_all(), SizeIs(std::min<std::int64_t>(rows, 2)));
  EXPECT_THAT(dataset.map_batches(fn<same>, {.batch_size = 2}).take_all(), SizeIs(rows));
  EXPECT_THAT(dataset.map_batches(actor<Same>()).take_all(), SizeIs(rows));
  EXPECT_THAT(dataset.map(fn<same_row>).take_all(), SizeIs(rows));
  EXPECT_THAT(dataset.filter(fn<always>).take_all(), SizeIs(rows));
  std::int64_t of_parts = 0;
  for (const Dataset& part : dataset.split(2)) of_parts += std::ssize(part.take_all());
  EXPECT_EQ(of_parts, rows);
  std::int64_t of_ranks = 0;
  for (const std::int64_t rank : {0, 1}) {
    for (const Batch& batch : dataset.shard({.rank = rank, .world_size = 2, .shuffle = true}).iter_batches())
      of_ranks += batch.num_rows();
  }
  EXPECT_EQ(of_ranks, rows);
}

class EmptyFiles : public ::testing::Test {
 protected:
  EmptyFiles() {
    write(root() / "year=2023" / "a.parquet", "[]");
    write(root() / "year=2024" / "a.parquet", "[1, 2]");
    write(root() / "year=2025" / "a.parquet", "[3]");
  }
  fs::path root() const { return directory_ / "rows"; }
  Dataset read(const ParquetOptions& options = {}) const { return threads(read_parquet(root(), options)); }

  TemporaryDirectory directory_;
};

TEST_F(EmptyFiles, OfAFolderAreCountedAndRead) {
  EXPECT_EQ(read().count(), 3);
  EXPECT_THAT(read().take_all(), SizeIs(3));
  EXPECT_EQ(read().filter(column("id") > 1).count(), 2);
  EXPECT_EQ(read().filter(column("year") < 2025).count(), 2);
  EXPECT_EQ(read().map_batches(fn<same>).count(), 3);
}

TEST_F(EmptyFiles, AreReadWithoutTheirColumns) {
  expect_only_rows(read().select_columns({}), 3);
  EXPECT_THAT(read({.columns = {"year"}}).take_all(),
              ElementsAre(Row{{"year", 2024}}, Row{{"year", 2024}}, Row{{"year", 2025}}));
  EXPECT_EQ(read({.columns = {"year"}}).filter(column("year") == 2025).count(), 1);
  EXPECT_EQ(read().filter(column("year") == 2023).select_columns({"year"}).count(), 0);
}

TEST_F(EmptyFiles, AloneAreADatasetWithoutRows) {
  const Dataset rows = threads(read_parquet((root() / "year=2023").string()));
  EXPECT_EQ(rows.schema(), (Schema{{{"id", "int64"}}}));
  EXPECT_EQ(rows.count(), 0);
  EXPECT_THAT(rows.random_shuffle(1).take_all(), IsEmpty());
  EXPECT_THAT(rows.filter(column("id") > 1).map(fn<same_row>).take_all(), IsEmpty());
  EXPECT_EQ(rows.aggregate({sum("id"), count("id"), mean("id")}),
            (Row{{"sum(id)", Value()}, {"count(id)", 0}, {"mean(id)", Value()}}));
  EXPECT_THAT(message_of<InvalidArgument>([&] { rows.take_batch(); }), HasSubstr("the dataset has none"));
  for (const Dataset& part : rows.split(3)) EXPECT_EQ(part.count(), 0);
  EXPECT_EQ(rows_in_batches(rows, {.batch_size = 4, .drop_last = true}), 0);
  EXPECT_EQ(rows.shard({.world_size = 2, .equal = true, .shuffle = true}).size(), 0);
  const auto files = rows.write_parquet(directory_ / "copy");
  ASSERT_THAT(files, SizeIs(1));
  EXPECT_EQ(read_parquet(files.front().string()).schema(), rows.schema());
  EXPECT_EQ(read_parquet(files.front().string()).count(), 0);
  expect_only_rows(rows.select_columns({}), 0);
}

TEST(RowsWithoutColumns, ComeFromEverySource) {
  expect_only_rows(threads(range(5)).select_columns({}), 5);
  expect_only_rows(threads(from_arrow(table_of("[1, 2, 3]"))).select_columns({}), 3);
  expect_only_rows(threads(from_arrow(table_of("[1, 2, 3]")->SelectColumns({}).ValueOrDie())), 3);
  expect_only_rows(threads(from_rows(kThreeRowsWithoutColumns)), 3);
  expect_only_rows(threads(from_batches({Batch{{"a", std::vector<int>{1, 2}}}.select({})})), 2);
  expect_only_rows(threads(Dataset()), 0);
  expect_only_rows(threads(Dataset(Value(threads(range(4)).select_columns({})))), 4);
}

TEST(RowsWithoutColumns, ComeFromTextFiles) {
  const TemporaryDirectory directory;
  test_support::write_bytes(directory / "rows.csv", "a,b\n1,2\n3,4\n");
  test_support::write_bytes(directory / "header.csv", "a,b\n");
  test_support::write_bytes(directory / "rows.json", "{\"a\": 1}\n{\"a\": 2}\n");
  test_support::write_bytes(directory / "none.json", "{}\n{}\n");
  expect_only_rows(threads(read_csv(directory / "rows.csv")).select_columns({}), 2);
  expect_only_rows(threads(read_csv(directory / "header.csv")).select_columns({}), 0);
  EXPECT_EQ(threads(read_csv(directory / "header.csv")).count(), 0);
  expect_only_rows(threads(read_json(directory / "rows.json")).select_columns({}), 2);
  expect_only_rows(threads(read_json(directory / "none.json")), 2);
}

TEST(RowsWithoutColumns, AreWhatAFunctionOfRowsMakesOfRows) {
  expect_only_rows(threads(range(4)).map(fn<no_values>), 4);
}

TEST(RowsWithoutColumns, GetColumnsOfTheirLength) {
  const Batch rows = Batch{{"a", std::vector<int>{1, 2}}}.select({});
  EXPECT_EQ(rows.num_rows(), 2);
  EXPECT_EQ(rows.with("b", std::vector<int>{5, 6}).row(1), (Row{{"b", 6}}));
  EXPECT_THAT(message_of<InvalidArgument>([&] { static_cast<void>(rows.with("b", std::vector<int>{5})); }),
              HasSubstr("column \"b\" has 1 rows and the batch 2"));
}

// A Parquet file cannot hold such rows.
TEST(RowsWithoutColumns, AreNotWrittenToParquetInSilence) {
  const TemporaryDirectory directory;
  EXPECT_THAT(
      message_of<InvalidArgument>([&] { threads(range(4)).select_columns({}).write_parquet(directory / "never"); }),
      HasSubstr("rows without columns"));
  EXPECT_TRUE(fs::is_empty(directory / "never"));
}

}  // namespace
}  // namespace cadre::data
