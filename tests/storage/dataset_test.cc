// Datasets in S3, in a process that also uses Cadre's own storages there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "cadre/data.h"
#include "object_server.h"
#include "storage/storage.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::storage_tests {
namespace {

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

}  // namespace
}  // namespace cadre::storage_tests
