// Folders whose names are columns, as Hive, Spark and pyarrow write them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cadre/data.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::data {
namespace {

namespace fs = std::filesystem;
using test_support::message_of;
using test_support::TemporaryDirectory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Has a file with two rows for each year and country.
class Partitions : public ::testing::Test {
 protected:
  Partitions() {
    for (const int year : {2023, 2024}) {
      for (const std::string country : {"de", "fr"}) {
        const fs::path folder = root() / ("year=" + std::to_string(year)) / ("country=" + country);
        write(folder, year * 10);
      }
    }
  }
  static void write(const fs::path& folder, std::int64_t id) {
    from_batches({Batch{{"id", std::vector<std::int64_t>{id, id + 1}}}}).write_parquet(folder);
  }
  static Dataset threads(const Dataset& dataset) {
    return dataset.with_options({.function_place = FunctionPlace::threads});
  }
  fs::path root() const { return directory_ / "rows"; }
  Dataset read(const ParquetOptions& options = {}) const { return threads(read_parquet(root(), options)); }

  TemporaryDirectory directory_;
};

TEST_F(Partitions, AreColumnsBehindThoseOfTheFiles) {
  EXPECT_EQ(read().schema(), (Schema{{{"id", "int64"}, {"year", "int32"}, {"country", "string"}}}));
  EXPECT_EQ(read().count(), 8);
  EXPECT_THAT(read().take(3), ElementsAre(Row{{"id", 20230}, {"year", 2023}, {"country", "de"}},
                                          Row{{"id", 20231}, {"year", 2023}, {"country", "de"}},
                                          Row{{"id", 20230}, {"year", 2023}, {"country", "fr"}}));
  EXPECT_THAT(read({.hive_partitioning = false}).columns(), ElementsAre("id"));
}

TEST_F(Partitions, AreSelectedAndAggregatedLikeOtherColumns) {
  EXPECT_THAT(read({.columns = {"country", "id"}}).take(1), ElementsAre(Row{{"country", "de"}, {"id", 20230}}));
  EXPECT_THAT(read().select_columns({"year"}).skip(6).take_all(),
              ElementsAre(Row{{"year", 2024}}, Row{{"year", 2024}}));
  EXPECT_DOUBLE_EQ(read().mean("year"), 2023.5);
  EXPECT_EQ(read().filter(column("year") == 2024 && column("id") == 20241).select_columns({"id"}).count(), 2);
}

TEST_F(Partitions, ThatAConditionLeavesOutAreNotOpened) {
  const fs::path damaged = root() / "year=2023" / "country=fr" / "part_000000.parquet";
  fs::resize_file(damaged, 10);
  EXPECT_EQ(read().filter(column("year") > 2023).count(), 4);
  EXPECT_EQ(read().filter(column("country") == "de" && column("id") > 0).count(), 4);
  EXPECT_EQ(threads(Dataset(Value(read().filter(column("country") == "de")))).count(), 4);
  EXPECT_THAT(message_of<StorageError>([&] { read().filter(column("id") > 0).count(); }), HasSubstr(damaged));
}

TEST_F(Partitions, ThatNoFileHasAreNoRows) {
  EXPECT_EQ(read().filter(column("year") == 1999).count(), 0);
  EXPECT_THAT(read().filter(column("year") == 1999).columns(), ElementsAre("id", "year", "country"));
}

TEST_F(Partitions, AreNullWhereNoFolderSaysThem) {
  write(root(), 1);
  write(root() / "year=__HIVE_DEFAULT_PARTITION__", 2);
  EXPECT_EQ(read().filter(is_null(column("year"))).count(), 4);
  EXPECT_EQ(read().filter(column("year") < 3000).count(), 8);
  EXPECT_EQ(read().filter(is_null(column("country"))).min("id"), Value(1));
}

TEST_F(Partitions, AreTextsWhereOneIsNoNumber) {
  write(root() / "year=unknown", 1);
  EXPECT_EQ(read().filter(column("year") == "2023").count(), 4);
}

TEST_F(Partitions, WithoutAnyValueAreNulls) {
  write(directory_ / "none" / "year=__HIVE_DEFAULT_PARTITION__", 1);
  EXPECT_EQ(read_parquet(directory_ / "none").take(1).front(), (Row{{"id", 1}, {"year", Value()}}));
}

TEST_F(Partitions, GiveWayToTheFilesOwnColumns) {
  const fs::path folder = directory_ / "own" / "id=77";
  write(folder, 1);
  EXPECT_EQ(read_parquet(directory_ / "own").take_all(), (std::vector<Row>{{{"id", 1}}, {{"id", 2}}}));
  EXPECT_EQ(read_parquet(directory_ / "own").filter(column("id") == 2).count(), 1);
}

TEST_F(Partitions, CountBelowWhatIsAskedFor) {
  EXPECT_THAT(read_parquet(root() / "year=2024").columns(), ElementsAre("id", "country"));
  EXPECT_THAT(read_parquet((root() / "year=*/country=de/*.parquet").string()).columns(),
              ElementsAre("id", "year", "country"));
  EXPECT_THAT(read_parquet((root() / "year=2024/country=de/part_000000.parquet").string()).columns(),
              ElementsAre("id", "year", "country"));
}

TEST_F(Partitions, AreSharedByRanks) {
  std::int64_t rows = 0;
  for (const std::int64_t rank : {0, 1}) {
    for (const Batch& batch : read().shard({.rank = rank, .world_size = 2, .shuffle = true}).iter_batches())
      rows += std::ranges::count(batch.values<std::int32_t>("year"), 2023);
  }
  EXPECT_EQ(rows, 4);
}

TEST_F(Partitions, OfTextFilesAreColumns) {
  for (const std::string day : {"1", "2"}) {
    const fs::path folder = directory_ / "texts" / ("day=" + day);
    fs::create_directories(folder);
    test_support::write_bytes(folder / "a.csv", "n\n" + day + day + "\n");
    test_support::write_bytes(folder / "a.json", "{\"n\": " + day + "}\n");
  }
  EXPECT_THAT(threads(read_csv(directory_ / "texts")).take_all(),
              ElementsAre(Row{{"n", 11}, {"day", 1}}, Row{{"n", 22}, {"day", 2}}));
  EXPECT_THAT(threads(read_csv(directory_ / "texts", {.columns = {"day"}})).filter(column("day") > 1).take_all(),
              ElementsAre(Row{{"day", 2}}));
  EXPECT_THAT(threads(read_json(directory_ / "texts")).take_all(),
              ElementsAre(Row{{"n", 1}, {"day", 1}}, Row{{"n", 2}, {"day", 2}}));
}

// Several threads open the files at a time.
TEST(ManyFiles, SayWhatIsWrongWithTheFirstThatIs) {
  const TemporaryDirectory directory;
  const Dataset rows = from_batches({Batch{{"id", std::vector<std::int64_t>(40)}}});
  const auto files = rows.write_parquet(directory / "rows", {.max_rows_per_file = 1});
  fs::resize_file(files[30], 10);
  const auto message = [&] {
    return message_of<StorageError>(
        [&] { read_parquet((directory / "rows").string(), {.schema_mismatch = SchemaMismatch::refuse}).count(); });
  };
  for (int round = 0; round < 10; ++round) EXPECT_THAT(message(), HasSubstr("part_000030.parquet"));
  from_batches({Batch{{"other", std::vector<std::int64_t>(1)}}}).write_parquet(directory / "other");
  fs::copy_file(directory / "other" / "part_000000.parquet", files[20], fs::copy_options::overwrite_existing);
  for (int round = 0; round < 10; ++round)
    EXPECT_THAT(message(), HasSubstr("part_000020.parquet: it has no column \"id\""));
  fs::resize_file(files[7], 10);
  for (int round = 0; round < 10; ++round) EXPECT_THAT(message(), HasSubstr("part_000007.parquet"));
}

}  // namespace
}  // namespace cadre::data
