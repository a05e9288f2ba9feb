// Plans and their results, in threads of this process.
#include "cadre/data/dataset.h"

#include <arrow/io/compressed.h>
#include <arrow/io/file.h>
#include <arrow/util/compression.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "cadre/data.h"
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
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const ExecutionOptions kThreads{.num_threads = 3, .function_place = FunctionPlace::threads};

Batch twice(const Batch& batch) {
  std::vector<std::int64_t> doubled;
  for (const std::int64_t id : batch.values<std::int64_t>("id")) doubled.push_back(2 * id);
  return batch.with("twice", std::move(doubled));
}

Batch size_of_batch(const Batch& batch) {
  return Batch{{"first", std::vector<std::int64_t>{batch.values<std::int64_t>("id").front()}},
               {"rows", std::vector<std::int64_t>{batch.num_rows()}}};
}

Batch add(const Batch& batch, const Config& config) {
  std::vector<std::int64_t> sums;
  for (const std::int64_t id : batch.values<std::int64_t>("id"))
    sums.push_back(id + config.get<std::int64_t>("amount"));
  return Batch{{"id", std::move(sums)}};
}

Batch throws_a_number(const Batch&) { throw 42; }

Batch fails_at_100(const Batch& batch) {
  const auto ids = batch.values<std::int64_t>("id");
  if (std::ranges::find(ids, 100) != ids.end()) throw std::runtime_error("100 is too much");
  return batch;
}

Batch sometimes_other_columns(const Batch& batch) {
  return batch.values<std::int64_t>("id").front() == 0 ? batch : Batch{{"other", std::vector<int>{1}}};
}

Row square(const Row& row) {
  const auto id = row.get<std::int64_t>("id");
  return {{"square", id * id}};
}

bool is_even(const Row& row) { return row.get<std::int64_t>("id") % 2 == 0; }

class Scaler {
 public:
  explicit Scaler(const Config& config) : factor_(config.get<std::int64_t>("factor")) { ++made; }
  Batch operator()(const Batch& batch) const {
    std::vector<std::int64_t> scaled;
    for (const std::int64_t id : batch.values<std::int64_t>("id")) scaled.push_back(factor_ * id);
    return Batch{{"scaled", std::move(scaled)}};
  }
  static inline std::atomic<int> made = 0;

 private:
  std::int64_t factor_;
};

class NeverMade {
 public:
  NeverMade() { throw std::runtime_error("there is no model"); }
  Batch operator()(const Batch& batch) const { return batch; }
};

std::vector<std::int64_t> ids_of(const Dataset& dataset, const std::string& column = "id") {
  std::vector<std::int64_t> ids;
  for (const Batch& batch : dataset.iter_batches({.batch_size = 64})) {
    const auto values = batch.values<std::int64_t>(column);
    ids.insert(ids.end(), values.begin(), values.end());
  }
  return ids;
}

std::vector<std::int64_t> numbers(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(end - begin));
  std::iota(all.begin(), all.end(), begin);
  return all;
}

Dataset threads(const Dataset& dataset) { return dataset.with_options(kThreads); }

// Files of 1,000 rows with the columns id, half and text, in row groups of 64.
class DatasetFiles : public ::testing::Test {
 protected:
  DatasetFiles() {
    std::vector<double> halves;
    std::vector<std::string> texts;
    for (std::int64_t id = 0; id < 1000; ++id) {
      halves.push_back(static_cast<double>(id) / 2);
      texts.push_back("row " + std::to_string(id));
    }
    from_batches({Batch{{"id", numbers(0, 1000)}, {"half", std::move(halves)}, {"text", texts}}})
        .write_parquet(folder(), {.max_rows_per_file = 300, .rows_per_row_group = 64});
  }

  fs::path folder() const { return directory_ / "rows"; }
  Dataset read(const ParquetOptions& options = {}) const { return threads(read_parquet(folder(), options)); }

  TemporaryDirectory directory_;
};

TEST_F(DatasetFiles, ComeBackAsTheyWereWrittenAndInOrder) {
  EXPECT_EQ(ids_of(read()), numbers(0, 1000));
  EXPECT_EQ(read().count(), 1000);
  EXPECT_EQ(read().schema(), (Schema{{{"id", "int64"}, {"half", "double"}, {"text", "string"}}}));
  EXPECT_EQ(read().take(1).front(), (Row{{"id", 0}, {"half", 0.0}, {"text", "row 0"}}));
}

TEST_F(DatasetFiles, AreFoundByPatternsAndPaths) {
  const auto part = [&](int number) {
    return (folder() / ("part_00000" + std::to_string(number) + ".parquet")).string();
  };
  EXPECT_EQ(ids_of(threads(read_parquet((folder() / "part_00000[12]*").string()))), numbers(300, 900));
  EXPECT_EQ(read_parquet({part(3), part(0)}).count(), 400);
  EXPECT_EQ(read_parquet("file://" + part(3)).count(), 100);
  EXPECT_THAT(message_of<NotFound>([&] { read_parquet((directory_ / "none").string()); }),
              HasSubstr("there is no file or folder"));
  EXPECT_THAT(message_of<NotFound>([&] { read_parquet((directory_ / "*.parquet").string()); }),
              HasSubstr("no file matches"));
}

TEST_F(DatasetFiles, ReadOnlyTheColumnsThatAreAskedFor) {
  EXPECT_THAT(read({.columns = {"text", "id"}}).columns(), ElementsAre("text", "id"));
  const Dataset selected = read().select_columns({"half"});
  EXPECT_EQ(selected.take(3).back(), (Row{{"half", 1.0}}));
  EXPECT_EQ(selected.limit(0).take_all().size(), 0U);
}

TEST_F(DatasetFiles, HaveColumnsWithOtherNames) {
  const Dataset renamed = read().rename_columns({{"id", "half"}, {"half", "id"}});
  EXPECT_THAT(renamed.columns(), ElementsAre("half", "id", "text"));
  EXPECT_EQ(renamed.select_columns({"half", "id"}).take(3).back(), (Row{{"half", 2}, {"id", 1.0}}));
  EXPECT_THAT(renamed.filter(column("half") == 7).select_columns({"text"}).take_all(),
              ElementsAre(Row{{"text", "row 7"}}));
  EXPECT_EQ(renamed.count(), read().count());
  EXPECT_EQ(Dataset(Value(renamed)).columns(), renamed.columns());
  EXPECT_THAT(message_of<InvalidArgument>([&] { read().rename_columns({{"price", "cost"}}).columns(); }),
              AllOf(HasSubstr("no column \"price\""), HasSubstr("id, half, text")));
  EXPECT_THAT(message_of<InvalidArgument>([&] { read().rename_columns({{"id", "text"}}).columns(); }),
              HasSubstr("two columns \"text\""));
  EXPECT_THAT(message_of<InvalidArgument>([&] { read().rename_columns({{"id", "a"}, {"id", "b"}}); }),
              HasSubstr("\"id\" is there twice"));
}

TEST_F(DatasetFiles, NameAColumnThatIsMissing) {
  const std::string message = message_of<InvalidArgument>([&] { read({.columns = {"id", "price"}}).count(); });
  EXPECT_THAT(message, AllOf(HasSubstr("part_000000.parquet has no column \"price\""), HasSubstr("id, half, text")));
  EXPECT_THAT(message_of<InvalidArgument>([&] { read().mean("price"); }), HasSubstr("no column \"price\""));
  EXPECT_THAT(message_of<InvalidArgument>([&] { read().filter(column("price") > 3).count(); }),
              HasSubstr("needs the column \"price\""));
}

TEST_F(DatasetFiles, AreFilteredWhereTheyAreRead) {
  const Dataset filtered = read().filter(column("id") >= 500 && column("id") < 510 && column("text") != "row 503");
  EXPECT_EQ(ids_of(filtered.select_columns({"id"})),
            (std::vector<std::int64_t>{500, 501, 502, 504, 505, 506, 507, 508, 509}));
  EXPECT_EQ(filtered.count(), 9);
  // Other row groups are not decoded: only one has these rows, and the tasks of the others give no rows.
  const auto stats = *filtered.stats();
  EXPECT_EQ(stats.operators.front().rows, 9);
}

TEST_F(DatasetFiles, FilterByColumnsThatAreNotSelected) {
  const Dataset filtered = read({.columns = {"text"}, .filter = column("id") == 7});
  EXPECT_THAT(filtered.take_all(), ElementsAre(Row{{"text", "row 7"}}));
  EXPECT_THAT(message_of<InvalidArgument>([&] { read({.columns = {"text"}}).filter(column("id") == 7).count(); }),
              HasSubstr("needs the column \"id\""));
}

TEST_F(DatasetFiles, GoThroughAFunctionInOrder) {
  const Dataset mapped = read().map_batches(fn<twice>, {.batch_size = 7, .concurrency = 4});
  std::vector<std::int64_t> expected;
  for (const std::int64_t id : numbers(0, 1000)) expected.push_back(2 * id);
  EXPECT_EQ(ids_of(mapped, "twice"), expected);
  EXPECT_DOUBLE_EQ(mapped.mean("twice"), 999);
}

TEST_F(DatasetFiles, ThatAreCutShortAreNamed) {
  const fs::path file = folder() / "part_000001.parquet";
  fs::resize_file(file, fs::file_size(file) / 2);
  EXPECT_THAT(message_of<StorageError>([&] { read().count(); }),
              AllOf(HasSubstr("part_000001.parquet"), HasSubstr("cut short")));
}

TEST_F(DatasetFiles, ThatAreDamagedNameTheRowGroup) {
  const fs::path file = folder() / "part_000000.parquet";
  std::string bytes = test_support::content_of(file);
  for (std::size_t at = bytes.size() / 2; at < bytes.size() / 2 + 200; ++at) bytes[at] = static_cast<char>(~bytes[at]);
  test_support::write_bytes(file, bytes);
  EXPECT_THAT(message_of<StorageError>([&] { read().take_all(); }),
              AllOf(HasSubstr("part_000000.parquet"), HasSubstr("row group ")));
}

TEST_F(DatasetFiles, WithOtherColumnsThanTheFirstAreNamedWhereTheyAreRefused) {
  from_batches(
      {Batch{
          {"id", std::vector<double>{1}}, {"half", std::vector<double>{1}}, {"text", std::vector<std::string>{"x"}}}})
      .write_parquet(directory_ / "other");
  fs::rename(directory_ / "other" / "part_000000.parquet", folder() / "zzz.parquet");
  EXPECT_THAT(
      message_of<StorageError>([&] { read({.schema_mismatch = SchemaMismatch::refuse}).count(); }),
      AllOf(HasSubstr("zzz.parquet: its column \"id\" is of double"), HasSubstr("part_000000.parquet is of int64")));
}

TEST_F(DatasetFiles, AreLimitedWithoutReadingTheRest) {
  const Dataset limited = read().skip(100).limit(5);
  EXPECT_EQ(ids_of(limited), numbers(100, 105));
  EXPECT_EQ(limited.stats()->operators.front().rows, 5);
  EXPECT_EQ(limited.count(), 5);
  EXPECT_EQ(read().skip(2000).count(), 0);
  EXPECT_EQ(ids_of(read().filter(column("id") >= 10).limit(3)), numbers(10, 13));
}

TEST_F(DatasetFiles, AreWrittenOnlyIntoAFolderWithoutParquetFiles) {
  EXPECT_THAT(message_of<InvalidArgument>([&] { read().write_parquet(folder()); }),
              HasSubstr("has Parquet files already (part_000000.parquet)"));
}

TEST_F(DatasetFiles, ThatCannotBeWrittenToTheEndAreRemoved) {
  const fs::path target = directory_ / "half";
  EXPECT_THROW(read().map_batches(fn<fails_at_100>).write_parquet(target), DatasetError);
  EXPECT_TRUE(fs::is_empty(target));
}

// Counts files that other processes could see in a folder while it is written; see NobodySeesBeforeTheyAreWhole.
fs::path watched;
std::atomic<int> seen = 0;
Batch look_at_folder(const Batch& batch) {
  for (const auto& entry : fs::directory_iterator(watched)) {
    if (!entry.path().filename().string().starts_with('.')) ++seen;
  }
  return batch;
}

TEST_F(DatasetFiles, NobodySeesBeforeTheyAreWhole) {
  watched = directory_ / "written";
  fs::create_directory(watched);
  seen = 0;
  const Dataset rows = read().map_batches(fn<look_at_folder>, {.batch_size = 10, .concurrency = 1});
  EXPECT_THAT(rows.write_parquet(watched, {.max_rows_per_file = 10}), SizeIs(100));
  EXPECT_EQ(seen, 0);
  EXPECT_EQ(read_parquet(watched).count(), 1000);
}

// A process that is killed while it writes leaves such a file.
TEST_F(DatasetFiles, AreWrittenWhereOthersWereNotFinished) {
  fs::create_directory(directory_ / "again");
  test_support::write_bytes(directory_ / "again" / ".part_000000.parquet", "half");
  read().write_parquet(directory_ / "again");
  EXPECT_EQ(ids_of(threads(read_parquet(directory_ / "again"))), numbers(0, 1000));
}

TEST_F(DatasetFiles, AreNotBegunByAPlanThatDoesNotFit) {
  EXPECT_THROW(read().select_columns({"price"}).write_parquet(directory_ / "never"), InvalidArgument);
  EXPECT_FALSE(fs::exists(directory_ / "never"));
}

TEST(Dataset, OfRangeHasNumbers) {
  EXPECT_EQ(ids_of(range(200000)), numbers(0, 200000));
  EXPECT_EQ(range(200000).count(), 200000);
  EXPECT_EQ(range(0).count(), 0);
  EXPECT_THROW(range(-1), InvalidArgument);
}

TEST(Dataset, CutsBatchesAcrossWhatIsRead) {
  const Dataset sizes = threads(range(100000)).map_batches(fn<size_of_batch>, {.batch_size = 30000});
  EXPECT_THAT(sizes.take_all(),
              ElementsAre(Row{{"first", 0}, {"rows", 30000}}, Row{{"first", 30000}, {"rows", 30000}},
                          Row{{"first", 60000}, {"rows", 30000}}, Row{{"first", 90000}, {"rows", 10000}}));
}

TEST(Dataset, GivesAFunctionItsConfig) {
  EXPECT_EQ(ids_of(threads(range(3)).map_batches(fn<add>, {.config = {{"amount", 5}}})), numbers(5, 8));
}

TEST(Dataset, MakesAClassOnceForEachWorker) {
  Scaler::made = 0;
  const Dataset scaled =
      threads(range(10000)).map_batches(actor<Scaler>(), {.batch_size = 100, .constructor_config = {{"factor", 3}}});
  EXPECT_EQ(scaled.sum("scaled"), Value(3 * 9999 * 5000));
  EXPECT_EQ(Scaler::made, 1);
}

TEST(Dataset, NamesAFunctionThatThrows) {
  const Dataset fails = threads(range(1000)).map_batches(fn<fails_at_100>, {.batch_size = 10});
  EXPECT_EQ(message_of<DatasetError>([&] { fails.count(); }),
            "map_batches(fails_at_100) has thrown std::runtime_error: 100 is too much");
  EXPECT_EQ(ids_of(fails.limit(100)), numbers(0, 100));
}

TEST(Dataset, NamesAFunctionThatThrowsWhatIsNoException) {
  EXPECT_EQ(message_of<DatasetError>([] { threads(range(10)).map_batches(fn<throws_a_number>).count(); }),
            "map_batches(throws_a_number) has thrown an exception of type int");
}

TEST(Dataset, NamesAClassWhoseConstructorThrows) {
  EXPECT_EQ(message_of<DatasetError>([] { threads(range(10)).map_batches(actor<NeverMade>()).count(); }),
            "map_batches(NeverMade): its constructor has thrown std::runtime_error: there is no model");
}

TEST(Dataset, NamesAFunctionThatReturnsOtherColumnsThanBefore) {
  const Dataset fails =
      threads(range(100)).map_batches(fn<sometimes_other_columns>, {.batch_size = 10, .concurrency = 1});
  EXPECT_THAT(message_of<DatasetError>([&] { fails.count(); }),
              HasSubstr("map_batches(sometimes_other_columns) has returned batches with different columns"));
}

TEST(Dataset, RefusesBadOptionsAllAtOnce) {
  const std::string message = message_of<InvalidArgument>([] {
    range(1).map_batches(fn<twice>,
                         {.batch_size = 0, .concurrency = -1, .num_gpus = -1, .constructor_config = {{"a", 1}}});
  });
  EXPECT_THAT(message,
              AllOf(HasSubstr("map_batches(twice)"), HasSubstr("batch_size is 0"), HasSubstr("concurrency is -1"),
                    HasSubstr("num_gpus is -1"), HasSubstr("constructor_config is for classes")));
}

TEST(Dataset, MapsAndFiltersRows) {
  EXPECT_EQ(ids_of(threads(range(10)).filter(fn<is_even>).map(fn<square>), "square"),
            (std::vector<std::int64_t>{0, 4, 16, 36, 64}));
}

TEST(Dataset, ConcatenatesInOrder) {
  const Dataset both = threads(range(5)).concat({range(3), range(2).filter(column("id") == 1)});
  EXPECT_EQ(ids_of(both), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 0, 1, 2, 1}));
  EXPECT_THAT(
      message_of<StorageError>([] { range(1).concat({from_rows({{{"x", 1}}})}, SchemaMismatch::refuse).count(); }),
      HasSubstr("column"));
}

TEST(Dataset, TakesTheFirstRowsOfAConcatThatMeetTheConditionsOfItsReads) {
  const TemporaryDirectory directory;
  threads(range(100)).write_parquet(directory / "rows");
  const Dataset read = threads(read_parquet((directory / "rows").string()));
  const Dataset both = read.filter(column("id") >= 90).concat({read.filter(column("id") < 5)});
  EXPECT_EQ(ids_of(both.limit(3)), numbers(90, 93));
  EXPECT_EQ(ids_of(both.skip(11)), numbers(1, 5));
  EXPECT_EQ(both.limit(12).count(), 12);
  EXPECT_EQ(ids_of(both.limit(10).skip(8)), numbers(98, 100));
}

TEST(Dataset, SplitsIntoPartsThatTogetherAreAll) {
  const auto parts = range(10).split(3);
  ASSERT_THAT(parts, SizeIs(3));
  EXPECT_EQ(ids_of(parts[0]), numbers(0, 4));
  EXPECT_EQ(ids_of(parts[1]), numbers(4, 7));
  EXPECT_EQ(ids_of(parts[2]), numbers(7, 10));
  EXPECT_EQ(range(10).split(3, {.equal = true})[2].count(), 3);
  EXPECT_THROW(range(10).split(0), InvalidArgument);
}

TEST(Dataset, ShufflesAllRowsTheSameHoweverMuchIsInMemory) {
  const auto in_memory = ids_of(threads(range(300000)).random_shuffle(7));
  ExecutionOptions little = kThreads;
  little.memory_limit_bytes = 1 << 20;
  const auto on_disk = ids_of(range(300000).random_shuffle(7).with_options(little));
  EXPECT_EQ(in_memory, on_disk);
  EXPECT_NE(in_memory, numbers(0, 300000));
  EXPECT_NE(in_memory, ids_of(threads(range(300000)).random_shuffle(8)));
  auto sorted = in_memory;
  std::ranges::sort(sorted);
  EXPECT_EQ(sorted, numbers(0, 300000));
}

TEST(Dataset, MaterializedRunsNothingAgain) {
  Scaler::made = 0;
  const Dataset rows =
      threads(range(100)).map_batches(actor<Scaler>(), {.constructor_config = {{"factor", 2}}}).materialize();
  EXPECT_EQ(rows.count(), 100);
  EXPECT_EQ(rows.sum("scaled"), Value(9900));
  EXPECT_EQ(Scaler::made, 1);
}

TEST(Dataset, AggregatesSeveralInOneExecution) {
  const Dataset rows =
      threads(from_rows({{{"a", 1}, {"b", "y"}}, {{"a", 4}, {"b", "x"}}, {{"a", Value()}, {"b", "z"}}}));
  const Row row = rows.aggregate({count("a"), sum("a"), min("a"), max("b"), mean("a"), std("a")});
  EXPECT_EQ(row, (Row{{"count(a)", 2},
                      {"sum(a)", 5},
                      {"min(a)", 1},
                      {"max(b)", "z"},
                      {"mean(a)", 2.5},
                      {"std(a)", std::sqrt(4.5)}}));
}

TEST(Dataset, LosesNoBlockToANan) {
  const Dataset blocks =
      threads(from_batches({Batch{{"x", std::vector<double>{1, 2, kNan}}}, Batch{{"x", std::vector<double>{10, 20}}}}));
  EXPECT_TRUE(std::isnan(blocks.mean("x")));
  EXPECT_DOUBLE_EQ(blocks.mean("x", {.ignore_nan = true}), 33.0 / 4);
  EXPECT_EQ(blocks.max("x"), Value(20.0));
  EXPECT_EQ(blocks.min("x"), Value(1.0));
}

TEST(Dataset, AggregatesOfNullsFollowTheOption) {
  const Dataset rows = threads(from_rows({{{"a", 1}}, {{"a", Value()}}}));
  EXPECT_DOUBLE_EQ(rows.mean("a"), 1);
  EXPECT_EQ(rows.aggregate({mean("a")}, {.ignore_nulls = false}), (Row{{"mean(a)", Value()}}));
  EXPECT_THROW(rows.mean("a", {.ignore_nulls = false}), InvalidArgument);
  EXPECT_EQ(rows.aggregate({count("a")}), (Row{{"count(a)", 1}}));
  EXPECT_EQ(rows.aggregate({count("a")}, {.ignore_nulls = false}), (Row{{"count(a)", 2}}));
}

TEST(Dataset, HasNoMeanOfNothing) {
  const Dataset nothing = threads(range(5)).filter(column("id") > 10);
  EXPECT_THAT(message_of<InvalidArgument>([&] { nothing.mean("id"); }), HasSubstr("mean(id) cannot be computed"));
  EXPECT_EQ(nothing.aggregate({sum("id"), count("id")}), (Row{{"sum(id)", Value()}, {"count(id)", 0}}));
}

TEST(Dataset, IsFilteredByNumbersThatAColumnsTypeDoesNotHave) {
  const Dataset rows = threads(from_batches({Batch{{"u", std::vector<std::uint64_t>{std::uint64_t{1} << 63, 1}},
                                                   {"n", std::vector<std::int64_t>{(std::int64_t{1} << 60) + 1, -3}},
                                                   {"small", std::vector<std::int32_t>{20'000'001, 0}},
                                                   {"x", std::vector<double>{std::ldexp(1.0, 60), 0.5}}}}));
  const auto kept = [&](const Expression& condition) { return rows.filter(condition).count(); };
  EXPECT_EQ(kept(column("u") > -1), 2);
  EXPECT_EQ(kept(-1 < column("u")), 2);
  EXPECT_EQ(kept(column("u") != -1), 2);
  EXPECT_EQ(kept(column("u") == -1), 0);
  EXPECT_EQ(kept(column("u") <= -1), 0);
  EXPECT_EQ(kept(column("u") >= 0.5), 2);
  EXPECT_EQ(kept(column("u") > 1.5), 1);
  EXPECT_EQ(kept(column("u") < 1e30), 2);
  EXPECT_EQ(kept(column("u") == std::ldexp(1.0, 63)), 1);
  EXPECT_EQ(kept(column("n") > std::ldexp(1.0, 60)), 1);
  EXPECT_EQ(kept(column("n") == std::ldexp(1.0, 60)), 0);
  EXPECT_EQ(kept(column("n") >= -3.5), 2);
  EXPECT_EQ(kept(-2.5 > column("n")), 1);
  EXPECT_EQ(kept(column("n") < kNan), 0);
  EXPECT_EQ(kept(column("n") != kNan), 2);
  EXPECT_EQ(kept(column("small") > 0.5), 1);
  EXPECT_EQ(kept(!(column("small") < 0.5)), 1);
  EXPECT_EQ(kept(column("x") < (std::int64_t{1} << 61)), 2);
  const Dataset nulls = threads(from_rows({{{"a", 1}}, {{"a", Value()}}}));
  EXPECT_EQ(nulls.filter(column("a") < 1e30).count(), 1);
  EXPECT_EQ(nulls.filter(!(column("a") > 1e30)).count(), 1);
}

TEST(Dataset, HasAsManyRowsInARangeAsAreAskedFor) {
  const std::int64_t many = std::int64_t{1} << 40;
  const Dataset rows = threads(range(many));
  EXPECT_EQ(rows.count(), many);
  EXPECT_EQ(ids_of(rows.limit(3)), numbers(0, 3));
  EXPECT_EQ(ids_of(rows.skip(many - 2)), numbers(many - 2, many));
  EXPECT_THAT(rows.skip(many / 2).take(1), ElementsAre(Row{{"id", many / 2}}));
}

TEST(Dataset, SumsIntegersExactlyOrSaysThatItCannot) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const Dataset large = threads(from_batches({Batch{{"a", std::vector<std::int64_t>{most, most, -most}}}}));
  EXPECT_EQ(large.sum("a"), Value(most));
  EXPECT_THAT(message_of<InvalidArgument>([&] { large.limit(2).sum("a"); }), HasSubstr("does not fit 64 bits"));
}

TEST(Dataset, ThatIsStoredGivesTheSameRows) {
  Dataset original = threads(range(1000))
                         .concat({from_rows({{{"id", -1}}})})
                         .filter(column("id") < 500 || is_null(column("id")))
                         .map_batches(fn<twice>, {.batch_size = 10, .concurrency = 2})
                         .random_shuffle(3)
                         .skip(1)
                         .limit(100)
                         .select_columns({"twice"});
  original.set_name("numbers");
  const Config config{{"train", original}};
  const Dataset restored(config.at("train"));
  EXPECT_EQ(restored.name(), "numbers");
  EXPECT_EQ(restored.options(), kThreads);
  EXPECT_EQ(ids_of(restored, "twice"), ids_of(original, "twice"));
  EXPECT_EQ(Value(restored), Value(original));
}

TEST(Dataset, ThatIsStoredKeepsFilesAndTheirOptions) {
  const TemporaryDirectory directory;
  test_support::write_bytes(directory / "a.csv", "1;x\n2;y\n");
  const Dataset original = read_csv((directory / "a.csv").string(),
                                    {.delimiter = ';', .column_names = {"n", "t"}, .types = {{"n", "int8"}}});
  const Dataset restored{Value(original)};
  EXPECT_EQ(restored.schema(), (Schema{{{"n", "int8"}, {"t", "string"}}}));
  EXPECT_EQ(restored.take_all(), original.take_all());
}

TEST(Dataset, IsNotMadeFromOtherValues) {
  EXPECT_THAT(message_of<InvalidArgument>([] { Dataset(Value(3)); }), HasSubstr("is no dataset"));
  Dict stored = Value(range(3)).dict();
  stored.front().second = 99;
  EXPECT_THAT(message_of<InvalidArgument>([&] { Dataset{Value(stored)}; }), HasSubstr("has version 99"));
}

TEST(Dataset, InheritsItsName) {
  Dataset one = range(3);
  one.set_name("three");
  EXPECT_EQ(one.limit(1).name(), "three");
  EXPECT_EQ(range(3).name(), "");
}

TEST(Dataset, WithoutRowsHasColumnsAndIsWritten) {
  const TemporaryDirectory directory;
  const Dataset nothing = threads(range(5)).filter(column("id") > 10);
  EXPECT_THAT(nothing.write_parquet(directory / "none"), SizeIs(1));
  const Dataset read = read_parquet((directory / "none").string());
  EXPECT_EQ(read.count(), 0);
  EXPECT_THAT(read.columns(), ElementsAre("id"));
  EXPECT_THAT(ids_of(read), IsEmpty());
  EXPECT_THAT(Dataset().take_all(), IsEmpty());
}

TEST(Dataset, SaysWhatItHasDone) {
  const Dataset dataset = threads(range(1000)).map_batches(fn<twice>, {.batch_size = 100});
  EXPECT_FALSE(dataset.stats());
  EXPECT_EQ(dataset.count(), 1000);
  const auto stats = dataset.stats();
  ASSERT_TRUE(stats);
  ASSERT_THAT(stats->operators, SizeIs(2));
  EXPECT_EQ(stats->operators[1].name, "map_batches(twice)");
  EXPECT_EQ(stats->operators[1].rows, 1000);
  EXPECT_GT(stats->peak_bytes, 0);
  EXPECT_THAT(to_string(*stats), HasSubstr("map_batches(twice)"));
}

Batch slow(const Batch& batch) {
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  return batch;
}

TEST(Dataset, ShowsHowFarItIs) {
  ExecutionOptions options = kThreads;
  options.progress_bars = true;
  Dataset dataset = range(40).map_batches(fn<slow>, {.batch_size = 10, .concurrency = 1}).with_options(options);
  dataset.set_name("numbers");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(dataset.count(), 40);
  const std::string shown = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(shown, AllOf(HasSubstr("numbers: "), HasSubstr("map_batches(slow)"), HasSubstr("40 rows")));
}

TEST(Dataset, CountsWhatMeetsAConditionByItsColumnsOnly) {
  const TemporaryDirectory directory;
  from_batches({Batch{{"id", numbers(0, 1000)}, {"wide", Column(std::vector<double>(100000), {100})}}})
      .write_parquet(directory / "rows");
  const Dataset some = threads(read_parquet((directory / "rows").string())).filter(column("id") < 10);
  EXPECT_EQ(some.count(), 10);
  EXPECT_LT(some.stats()->operators.front().bytes, 1000);
}

// ---- Text files

TEST(TextFiles, OfCsvAreReadWithNullsAndTypes) {
  const TemporaryDirectory directory;
  test_support::write_bytes(directory / "a.csv", "n,x,t\n1,0.5,one\n2,,\n");
  test_support::write_bytes(directory / "b.csv", "n,x,t\n3,1.5,\"\"\n");
  const Dataset rows = threads(read_csv(directory.path().string()));
  EXPECT_THAT(rows.take_all(),
              ElementsAre(Row{{"n", 1}, {"x", 0.5}, {"t", "one"}}, Row{{"n", 2}, {"x", Value()}, {"t", Value()}},
                          Row{{"n", 3}, {"x", 1.5}, {"t", ""}}));
  EXPECT_EQ(rows.count(), 3);
  EXPECT_THAT(rows.select_columns({"t"}).columns(), ElementsAre("t"));
}

TEST(TextFiles, OfCsvHaveSpelledNullsInColumnsOfNumbersAndTextsInThoseOfTexts) {
  const TemporaryDirectory directory;
  test_support::write_bytes(directory / "a.csv", "t,n,x\nNA,NA,nan\nnull,1,n/a\n,,\n\"\",2,1.5\n");
  const Dataset rows = threads(read_csv(directory.path().string()));
  EXPECT_EQ(rows.schema(), (Schema{{{"t", "string"}, {"n", "int64"}, {"x", "double"}}}));
  const Batch batch = rows.take_batch();
  EXPECT_TRUE(batch.is_null("n", 0));
  EXPECT_TRUE(std::isnan(batch.value("x", 0).get<double>()));
  const std::vector<Row> all = rows.take_all();
  EXPECT_EQ(all[0].dict().front().second, Value("NA"));
  EXPECT_THAT(std::vector<Row>(all.begin() + 1, all.end()),
              ElementsAre(Row{{"t", "null"}, {"n", 1}, {"x", Value()}},
                          Row{{"t", Value()}, {"n", Value()}, {"x", Value()}}, Row{{"t", ""}, {"n", 2}, {"x", 1.5}}));
}

TEST(TextFiles, OfCsvMayHaveSpelledNullsAfterManyRows) {
  const TemporaryDirectory directory;
  std::string csv = "n,t,x\n";
  for (const std::int64_t n : numbers(0, 20000)) csv += (n == 15000 ? "NA" : std::to_string(n)) + ",NA,0.5\n";
  test_support::write_bytes(directory / "a.csv", csv + "nan,n/a,nan\n");
  ExecutionOptions little = kThreads;
  little.memory_limit_bytes = 1 << 20;
  const std::vector<Row> rows =
      read_csv(directory.path().string(), {.types = {{"n", "int64"}}}).with_options(little).take_all();
  ASSERT_EQ(rows.size(), 20001U);
  for (const std::int64_t n : numbers(0, 20000)) {
    const Row expected{{"n", n == 15000 ? Value() : Value(n)}, {"t", "NA"}, {"x", 0.5}};
    ASSERT_EQ(rows[static_cast<std::size_t>(n)], expected) << n;
  }
  EXPECT_TRUE(rows.back().dict()[0].second.is_null());
  EXPECT_EQ(rows.back().dict()[1].second, Value("n/a"));
  EXPECT_TRUE(std::isnan(rows.back().dict()[2].second.get<double>()));
}

TEST(TextFiles, OfCsvMayHaveEmptyLinesBeforeTheHeader) {
  const TemporaryDirectory directory;
  test_support::write_bytes(directory / "a.csv", "\n\nn\n1\n2\n");
  EXPECT_EQ(ids_of(threads(read_csv(directory.path().string())), "n"), numbers(1, 3));
}

TEST(TextFiles, WithAValueThatDoesNotFitAreNamed) {
  const TemporaryDirectory directory;
  test_support::write_bytes(directory / "a.csv", "n\n1\n");
  test_support::write_bytes(directory / "b.csv", "n\none\n");
  EXPECT_THAT(message_of<StorageError>([&] { threads(read_csv(directory.path().string())).take_all(); }),
              HasSubstr("b.csv"));
}

TEST(TextFiles, WithoutValuesInAColumnTakeTheTypeOfTheNext) {
  const TemporaryDirectory directory;
  test_support::write_bytes(directory / "a.csv", "n,x,t\n");
  test_support::write_bytes(directory / "b.csv", "n,x,t\n1,,\n");
  test_support::write_bytes(directory / "c.csv", "n,x,t\n2,0.5,\n");
  const Dataset rows = threads(read_csv(directory.path().string()));
  EXPECT_EQ(rows.schema(), (Schema{{{"n", "int64"}, {"x", "double"}, {"t", "string"}}}));
  EXPECT_THAT(rows.take_all(),
              ElementsAre(Row{{"n", 1}, {"x", Value()}, {"t", Value()}}, Row{{"n", 2}, {"x", 0.5}, {"t", Value()}}));
}

TEST(TextFiles, ThatAreCompressedAreReadByTheirNames) {
  const TemporaryDirectory directory;
  std::string text = "n\n";
  for (const std::int64_t n : numbers(0, 100000)) text += std::to_string(n) + "\n";
  const auto codec = arrow::util::Codec::Create(arrow::Compression::GZIP).ValueOrDie();
  const auto file = arrow::io::FileOutputStream::Open(directory / "a.csv.gz").ValueOrDie();
  const auto stream = arrow::io::CompressedOutputStream::Make(codec.get(), file).ValueOrDie();
  ASSERT_TRUE(stream->Write(text).ok());
  ASSERT_TRUE(stream->Close().ok());
  const Dataset rows = threads(read_csv(directory.path().string()));
  EXPECT_EQ(ids_of(rows, "n"), numbers(0, 100000));
  EXPECT_EQ(rows.count(), 100000);
  fs::resize_file(directory / "a.csv.gz", 1000);
  EXPECT_THAT(message_of<StorageError>([&] { rows.count(); }), HasSubstr("a.csv.gz"));
}

TEST(TextFiles, MayHaveLinesOfAnyLength) {
  const TemporaryDirectory directory;
  std::string csv = "n,t\n";
  std::string json;
  for (const std::int64_t n : numbers(0, 1000)) {
    const std::string text(n == 700 ? 5000000 : n % 100 == 50 ? 300000 : 5, 'x');
    csv += std::to_string(n) + "," + text + "\n";
    json += "{\"n\": " + std::to_string(n) + ", \"t\": \"" + text + "\"}\n";
  }
  test_support::write_bytes(directory / "a.csv", csv);
  test_support::write_bytes(directory / "a.json", json);
  test_support::write_bytes(directory / "first.json", "{\"t\": \"" + std::string(5000000, 'y') + "\"}\n");
  ExecutionOptions little = kThreads;
  little.memory_limit_bytes = 1 << 20;
  for (const ExecutionOptions& options : {kThreads, little}) {
    EXPECT_EQ(ids_of(read_csv((directory / "a.csv").string()).with_options(options), "n"), numbers(0, 1000));
    EXPECT_EQ(ids_of(read_json((directory / "a.json").string()).with_options(options), "n"), numbers(0, 1000));
    EXPECT_EQ(ids_of(read_csv((directory / "a.csv").string()).skip(650).limit(100).with_options(options), "n"),
              numbers(650, 750));
    EXPECT_EQ(read_json((directory / "first.json").string()).with_options(options).count(), 1);
  }
}

TEST(TextFiles, WithEntriesThatComeLateSaySo) {
  const TemporaryDirectory directory;
  std::string json;
  for (const std::int64_t n : numbers(0, 200000)) json += "{\"n\": " + std::to_string(n) + "}\n";
  test_support::write_bytes(directory / "a.json", json + "{\"n\": 1, \"m\": 2}\n");
  EXPECT_THAT(message_of<StorageError>([&] { threads(read_json(directory.path().string())).take_all(); }),
              AllOf(HasSubstr("a.json, after row "),
                    HasSubstr("there is an entry that the beginning of the file does not have: say the type of its "
                              "column in the options' `types`")));
  const Dataset with_type = threads(read_json(directory.path().string(), {.types = {{"m", "int64"}}}));
  EXPECT_EQ(with_type.skip(200000).take_all().at(0).get<std::int64_t>("m"), 2);
}

TEST(TextFiles, WithOtherColumnsAreNamedWithTheFirstWhereTheyAreRefused) {
  const TemporaryDirectory directory;
  test_support::write_bytes(directory / "a.csv", "n\n1\n");
  test_support::write_bytes(directory / "b.csv", "m\n1\n");
  const CsvOptions strict{.schema_mismatch = SchemaMismatch::refuse};
  EXPECT_THAT(message_of<StorageError>([&] { threads(read_csv(directory.path().string(), strict)).take_all(); }),
              AllOf(HasSubstr("b.csv: it has no column \"n\""), HasSubstr("a.csv has")));
  test_support::write_bytes(directory / "a.json", "{\"n\": 1}\n");
  test_support::write_bytes(directory / "b.json", "{\"n\": 1, \"more\": 2}\n");
  const JsonOptions strictly{.schema_mismatch = SchemaMismatch::refuse};
  EXPECT_THAT(message_of<StorageError>([&] { threads(read_json(directory.path().string(), strictly)).take_all(); }),
              HasSubstr("b.json: it has a column \"more\""));
}

TEST(TextFiles, OfJsonHaveTheTypesThatAreSaid) {
  const TemporaryDirectory directory;
  test_support::write_bytes(directory / "a.json", "{\"x\": 1, \"t\": \"a\"}\n");
  test_support::write_bytes(directory / "b.json", "{\"x\": 1.5, \"t\": \"b\"}\n");
  const std::string path = directory.path();
  EXPECT_THAT(message_of<StorageError>(
                  [&] { threads(read_json(path, {.schema_mismatch = SchemaMismatch::refuse})).take_all(); }),
              AllOf(HasSubstr("b.json"), HasSubstr("or that the options' `types` says")));
  EXPECT_THAT(threads(read_json(path, {.types = {{"x", "double"}}})).take_all(),
              ElementsAre(Row{{"x", 1.0}, {"t", "a"}}, Row{{"x", 1.5}, {"t", "b"}}));
}

TEST(TextFiles, OfJsonAreReadLineByLine) {
  const TemporaryDirectory directory;
  test_support::write_bytes(directory / "a.jsonl", "{\"a\": 1, \"b\": [1, 2]}\n{\"a\": null, \"b\": []}\n");
  test_support::write_bytes(directory / "empty.json", "");
  const Dataset rows = threads(read_json(directory.path().string()));
  EXPECT_THAT(rows.take_all(), ElementsAre(Row{{"a", 1}, {"b", list(1, 2)}}, Row{{"a", Value()}, {"b", List{}}}));
}

}  // namespace
}  // namespace cadre::data
