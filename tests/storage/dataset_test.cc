// Datasets in S3, in a process that also uses Cadre's own storages there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "cadre/data.h"
#include "object_server.h"
#include "storage/storage.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::storage_tests {
namespace {

using data::Dataset;
using test_support::message_of;
using test_support::TemporaryDirectory;
using testing::HasSubstr;

TEST(DatasetInS3, IsReadByFolderPatternAndName) {
  std::vector<std::int64_t> ids(1000);
  std::iota(ids.begin(), ids.end(), 0);
  const TemporaryDirectory directory;
  const auto files = data::from_batches({data::Batch{{"id", ids}}})
                         .write_parquet(directory / "rows", {.max_rows_per_file = 300, .rows_per_row_group = 100});
  ObjectServer server;
  const auto storage = storage::open_storage(storage::parse_uri(server.uri("rows")));
  for (const auto& file : files) storage->upload(file, file.filename());

  const data::Dataset rows = data::read_parquet(server.uri("rows"));
  EXPECT_EQ(rows.count(), 1000);
  EXPECT_EQ(rows.filter(data::column("id") >= 250).select_columns({"id"}).min("id"), Value(250));
  std::int64_t next = 0;
  for (const data::Batch& batch : rows.iter_batches({.batch_size = 64})) {
    for (const std::int64_t id : batch.values<std::int64_t>("id")) EXPECT_EQ(id, next++);
  }
  EXPECT_EQ(next, 1000);
  EXPECT_EQ(data::read_parquet(server.uri("rows/part_00000[01]*")).count(), 600);
  EXPECT_EQ(data::read_parquet(server.uri("rows/part_000003.parquet")).count(), 100);
  EXPECT_THAT(message_of<NotFound>([&] { data::read_parquet(server.uri("none")); }), HasSubstr("s3://bucket/none"));
}

Dataset some_rows() { return data::range(1000).with_options({.function_place = data::FunctionPlace::threads}); }

data::Batch fails_at_900(const data::Batch& batch) {
  if (std::ranges::find(batch.values<std::int64_t>("id"), 900) != batch.values<std::int64_t>("id").end())
    throw std::runtime_error("900 is too much");
  return batch;
}

TEST(DatasetInS3, IsWrittenAndReadBack) {
  ObjectServer server;
  const auto files = some_rows().write_parquet(server.uri("written/rows"), {.max_rows_per_file = 300});
  ASSERT_EQ(files.size(), 4U);
  EXPECT_EQ(files[3], server.uri("written/rows/part_000003.parquet"));
  EXPECT_EQ(data::read_parquet(files[3]).count(), 100);
  const data::Dataset rows = data::read_parquet(server.uri("written/rows"));
  EXPECT_EQ(rows.count(), 1000);
  EXPECT_EQ(rows.sum("id"), Value(999 * 500));
  EXPECT_THAT(message_of<InvalidArgument>([&] { some_rows().write_parquet(server.uri("written/rows")); }),
              HasSubstr("s3://bucket/written/rows, which has Parquet files already"));
}

// Uploads in several parts, most of which are sent while the file is being written.
TEST(DatasetInS3, IsWrittenInLargeFiles) {
  ObjectServer server;
  std::vector<double> values(std::size_t{5} << 20);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i) * 1.000001;
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  data::from_batches({data::Batch{{"x", std::move(values)}}})
      .write_parquet(server.uri("large"), {.compression = "none"});
  EXPECT_NEAR(data::read_parquet(server.uri("large")).sum("x").get<double>(), sum, 1);
}

TEST(DatasetInS3, ThatCannotBeWrittenLeavesNothing) {
  ObjectServer server;
  const auto storage = storage::open_storage(storage::parse_uri(server.uri("half")));
  const Dataset fails = some_rows().map_batches(fn<fails_at_900>, {.batch_size = 50});
  EXPECT_THROW(fails.write_parquet(server.uri("half"), {.max_rows_per_file = 300}), data::DatasetError);
  EXPECT_TRUE(storage->list("").empty());
  server.fail("denied");
  EXPECT_THAT(message_of<StorageError>([&] { some_rows().write_parquet(server.uri("half")); }),
              HasSubstr("s3://bucket/half"));
  server.well();
  EXPECT_TRUE(storage->list("").empty());
  EXPECT_THAT(message_of<StorageError>([&] { some_rows().write_parquet("s3://nowhere/half"); }),
              HasSubstr("s3://nowhere/half"));
}

}  // namespace
}  // namespace cadre::storage_tests
