// Files of one dataset whose columns differ.
#include <arrow/io/file.h>
#include <arrow/json/from_string.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <arrow/util/compression.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <parquet/arrow/writer.h>

#include "cadre/data.h"
#include "small_datasets.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::data {
namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;
using test_support::message_of;
using test_support::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Columns = std::vector<std::tuple<std::string, std::shared_ptr<arrow::DataType>, std::string>>;

class DifferentFiles : public ::testing::Test {
 protected:
  // Writes a Parquet file of these columns, in row groups of 2 rows.
  void write(const fs::path& name, const Columns& columns) {
    arrow::FieldVector fields;
    arrow::ArrayVector arrays;
    for (const auto& [column, type, values] : columns) {
      fields.push_back(arrow::field(column, type));
      arrays.push_back(arrow::json::ArrayFromJSONString(type, values).ValueOrDie());
    }
    fs::create_directories((root() / name).parent_path());
    const auto stream = arrow::io::FileOutputStream::Open(root() / name).ValueOrDie();
    const auto keep_types = parquet::ArrowWriterProperties::Builder().store_schema()->build();
    ASSERT_TRUE(parquet::arrow::WriteTable(*arrow::Table::Make(arrow::schema(fields), arrays),
                                           arrow::default_memory_pool(), stream, 2,
                                           parquet::default_writer_properties(), keep_types)
                    .ok());
    ASSERT_TRUE(stream->Close().ok());
  }
  // Returns the type of column "a", and its rows, of files that have the column in these types.
  std::string unified(const std::vector<std::pair<std::shared_ptr<arrow::DataType>, std::string>>& files) {
    fs::remove_all(root());
    int number = 0;
    for (const auto& [type, values] : files) write(std::to_string(number++) + ".parquet", {{"a", type, values}});
    List rows;
    for (const Row& row : read().take_all()) rows.push_back(row.at("a"));
    return read().schema().fields.front().type + " " + to_json(rows);
  }
  fs::path root() const { return directory_ / "rows"; }
  Dataset read(const ParquetOptions& options = {}) const {
    return read_parquet(root(), options).with_options({.num_threads = 2, .function_place = FunctionPlace::threads});
  }

  TemporaryDirectory directory_;
};

TEST_F(DifferentFiles, HaveTheColumnsOfAll) {
  write("1.parquet", {{"a", arrow::int64(), "[1, 2]"}, {"b", arrow::utf8(), R"(["x", "y"])"}});
  write("2.parquet", {{"c", arrow::float64(), "[0.5]"}, {"a", arrow::int64(), "[3]"}});
  EXPECT_EQ(read().schema(), (Schema{{{"a", "int64"}, {"b", "string"}, {"c", "double"}}}));
  EXPECT_THAT(read().take_all(),
              ElementsAre(Row{{"a", 1}, {"b", "x"}, {"c", Value()}}, Row{{"a", 2}, {"b", "y"}, {"c", Value()}},
                          Row{{"a", 3}, {"b", Value()}, {"c", 0.5}}));
  EXPECT_THAT(read().select_columns({"c", "b"}).skip(1).take_all(),
              ElementsAre(Row{{"c", Value()}, {"b", "y"}}, Row{{"c", 0.5}, {"b", Value()}}));
  EXPECT_EQ(read().count(), 3);
  EXPECT_EQ(read().aggregate({count("b"), sum("c")}), (Row{{"count(b)", 2}, {"sum(c)", 0.5}}));
}

TEST_F(DifferentFiles, MeetConditionsOnColumnsThatTheyLack) {
  write("1.parquet", {{"a", arrow::int64(), "[1, 2, 3, 4]"}});
  write("2.parquet", {{"a", arrow::int64(), "[5, 6]"}, {"b", arrow::float64(), "[0.5, NaN]"}});
  EXPECT_EQ(read().filter(is_null(column("b"))).count(), 4);
  EXPECT_EQ(read().filter(column("b") < 1).min("a"), Value(5));
  EXPECT_EQ(read().filter(!(column("b") < 1)).take_all().size(), 1U);
  EXPECT_EQ(read().filter(is_null(column("b")) && column("a") > 2).count(), 2);
  EXPECT_EQ(read().filter(column("b") < 1 || column("a") == 1).select_columns({"a"}).take_all().size(), 2U);
  // A file in which no row can match is not decoded.
  const Dataset filtered = read().filter(column("b") < 1);
  filtered.take_all();
  EXPECT_EQ(filtered.stats()->operators.front().rows, 1);
}

TEST_F(DifferentFiles, AreSkippedByStatisticsOfOtherWidths) {
  write("1.parquet", {{"a", arrow::int8(), "[1, 2, 3, 4]"}});
  write("2.parquet", {{"a", arrow::int64(), "[1, 200, 300, 4000000000]"}});
  write("3.parquet", {{"a", arrow::float32(), "[0.5, 2.5, NaN, null]"}});
  EXPECT_EQ(read().schema().fields.front().type, "double");
  EXPECT_EQ(read().filter(column("a") >= 3).count(), 5);
  EXPECT_EQ(read().filter(column("a") > 2.25).count(), 6);
  EXPECT_EQ(read().filter(column("a") == 200).count(), 1);
  EXPECT_EQ(read().filter(!(column("a") < 4000)).count(), 2);
}

TEST_F(DifferentFiles, HaveTheTypeThatAllGoInto) {
  using namespace arrow;
  EXPECT_EQ(unified({{null(), "[null]"}, {int32(), "[7]"}}), "int32 [null, 7]");
  EXPECT_EQ(unified({{utf8(), R"(["x"])"}, {null(), "[null]"}}), R"(string ["x", null])");
  EXPECT_EQ(unified({{int8(), "[1]"}, {int64(), "[5000000000]"}}), "int64 [1, 5000000000]");
  EXPECT_EQ(unified({{uint8(), "[255]"}, {int8(), "[-1]"}}), "int16 [255, -1]");
  EXPECT_EQ(unified({{float32(), "[0.5]"}, {float64(), "[0.1]"}}), "double [0.5, 0.1]");
  EXPECT_EQ(unified({{int32(), "[3]"}, {float64(), "[0.5]"}}), "double [3.0, 0.5]");
  EXPECT_EQ(unified({{utf8(), R"(["x"])"}, {large_utf8(), R"(["y"])"}}), R"(large_string ["x", "y"])");
  EXPECT_EQ(unified({{date32(), "[1]"}, {null(), "[null]"}}), R"(date32[day] ["1970-01-02", null])");
  EXPECT_EQ(unified({{timestamp(TimeUnit::MILLI), "[1000]"}, {timestamp(TimeUnit::MICRO), "[1500000]"}}),
            R"(timestamp[us] ["1970-01-01 00:00:01.000000", "1970-01-01 00:00:01.500000"])");
  EXPECT_EQ(unified({{list(int32()), "[[1], null]"}, {list(float64()), "[[0.5]]"}}),
            "list<element: double> [[1.0], null, [0.5]]");
  EXPECT_EQ(unified({{fixed_size_list(int32(), 2), "[[1, 2]]"}, {list(int32()), "[[3]]"}}),
            "list<element: int32> [[1, 2], [3]]");
}

TEST_F(DifferentFiles, DecodeDictionariesBesidePlainValues) {
  using namespace arrow;
  const auto words = dictionary(int32(), utf8());
  EXPECT_EQ(unified({{words, R"(["x", "y", "x"])"}, {utf8(), R"(["z"])"}}), R"(string ["x", "y", "x", "z"])");
  EXPECT_EQ(unified({{utf8(), R"(["z"])"}, {words, R"(["x", null])"}}), R"(string ["z", "x", null])");
  EXPECT_EQ(unified({{null(), "[null]"}, {words, R"(["x"])"}}),
            R"(dictionary<values=string, indices=int32, ordered=0> [null, "x"])");
}

TEST_F(DifferentFiles, GiveStructsTheFieldsOfAll) {
  using namespace arrow;
  EXPECT_EQ(unified({{struct_({field("x", int32())}), R"([{"x": 1}, null, {"x": 2}])"},
                     {struct_({field("y", utf8()), field("x", int64())}), R"([{"y": "b", "x": 3}])"}}),
            R"(struct<x: int64, y: string> [{"x": 1, "y": null}, null, {"x": 2, "y": null}, {"x": 3, "y": "b"}])");
}

TEST_F(DifferentFiles, WhoseTypesDoNotGoTogetherAreNamed) {
  write("1.parquet", {{"a", arrow::int64(), "[1]"}, {"b", arrow::int8(), "[1]"}});
  write("2.parquet", {{"a", arrow::int64(), "[1]"}, {"b", arrow::float64(), "[1]"}});
  write("3.parquet", {{"a", arrow::int64(), "[1]"}, {"b", arrow::utf8(), R"(["x"])"}});
  EXPECT_THAT(message_of<StorageError>([&] { read().count(); }),
              AllOf(HasSubstr("the column \"b\""), HasSubstr("double in "), HasSubstr("/2.parquet, and string in "),
                    HasSubstr("/3.parquet. Write one of them again")));
}

TEST_F(DifferentFiles, WithAValueThatTheCommonTypeHasNotAreNamed) {
  write("1.parquet", {{"a", arrow::int64(), "[9007199254740993]"}});
  write("2.parquet", {{"a", arrow::float64(), "[0.5]"}});
  EXPECT_THAT(
      message_of<StorageError>([&] { read().take_all(); }),
      AllOf(HasSubstr("1.parquet, whose column \"a\" is of int64 and becomes double"), HasSubstr("9007199254740993")));
}

TEST_F(DifferentFiles, AreRefusedOnRequest) {
  write("1.parquet", {{"a", arrow::int32(), "[1]"}});
  write("2.parquet", {{"a", arrow::int64(), "[1]"}});
  const auto message = [&] {
    return message_of<StorageError>([&] { read({.schema_mismatch = SchemaMismatch::refuse}).count(); });
  };
  EXPECT_THAT(message(),
              AllOf(HasSubstr("2.parquet: its column \"a\" is of int64"), HasSubstr("1.parquet is of int32")));
  write("2.parquet", {{"b", arrow::int64(), "[1]"}, {"a", arrow::int32(), "[1]"}});
  EXPECT_THAT(message(), HasSubstr("2.parquet: it has a column \"b\", which "));
  // A dataset that was stored and read again is as strict.
  EXPECT_THROW(Dataset(Value(read({.schema_mismatch = SchemaMismatch::refuse}))).count(), StorageError);
  EXPECT_EQ(Dataset(Value(read())).count(), 2);
}

TEST_F(DifferentFiles, InFoldersHaveTheFoldersColumnsBehindTheirs) {
  write("year=2023/1.parquet", {{"a", arrow::int64(), "[1]"}});
  write("year=2024/1.parquet", {{"a", arrow::int64(), "[2]"}, {"b", arrow::int8(), "[7]"}});
  EXPECT_THAT(read().take_all(),
              ElementsAre(Row{{"a", 1}, {"b", Value()}, {"year", 2023}}, Row{{"a", 2}, {"b", 7}, {"year", 2024}}));
  EXPECT_EQ(read().filter(column("b") == 7 && column("year") == 2024).count(), 1);
  // A column of the file hides the one in the folder's name.
  write("year=2025/1.parquet", {{"a", arrow::int64(), "[3]"}, {"year", arrow::int64(), "[5000000000]"}});
  EXPECT_THAT(read().select_columns({"year"}).take_all(),
              ElementsAre(Row{{"year", 2023}}, Row{{"year", 2024}}, Row{{"year", 5000000000}}));
}

TEST_F(DifferentFiles, OfTextHaveTheColumnsOfAll) {
  fs::create_directories(root());
  test_support::write_bytes(root() / "1.csv", "a,b\n1,x\n");
  test_support::write_bytes(root() / "2.csv", "c,a\n,0.5\n");
  test_support::write_bytes(root() / "3.csv", "a\n2\n");
  test_support::write_bytes(root() / "1.json", "{\"a\": 1}\n");
  test_support::write_bytes(root() / "2.json", "{\"b\": [1], \"a\": 0.5}\n");
  const std::vector<Row> of_csv{{{"a", 1.0}, {"b", "x"}, {"c", Value()}},
                                {{"a", 0.5}, {"b", Value()}, {"c", Value()}},
                                {{"a", 2.0}, {"b", Value()}, {"c", Value()}}};
  EXPECT_EQ(read_csv(root()).take_all(), of_csv);
  EXPECT_EQ(read_csv(root()).select_columns({"c", "a"}).mean("a"), 3.5 / 3);
  const std::vector<Row> of_json{{{"a", 1.0}, {"b", Value()}}, {{"a", 0.5}, {"b", list(1)}}};
  EXPECT_EQ(read_json(root()).take_all(), of_json);
  test_support::write_bytes(root() / "2.csv", "a,c\n2,3\n");
  EXPECT_THAT(
      message_of<StorageError>([&] { read_csv(root(), {.schema_mismatch = SchemaMismatch::refuse}).take_all(); }),
      AllOf(HasSubstr("2.csv: it has no column \"b\", which "), HasSubstr("1.csv has")));
}

TEST_F(DifferentFiles, OfTextWhoseTypesDoNotGoTogetherAreNamed) {
  fs::create_directories(root());
  test_support::write_bytes(root() / "1.csv", "a\n1\n");
  test_support::write_bytes(root() / "2.csv", "a\nx\n");
  EXPECT_THAT(message_of<StorageError>([&] { read_csv(root()).count(); }),
              AllOf(HasSubstr("the column \"a\""), HasSubstr("int64 in "), HasSubstr("1.csv, and string in "),
                    HasSubstr("2.csv")));
  EXPECT_EQ(read_csv(root(), {.types = {{"a", "string"}}}).take_all(), (std::vector<Row>{{{"a", "1"}}, {{"a", "x"}}}));
}

TEST(JsonText, ThatIsNestedTooDeeplyNamesTheLine) {
  const TemporaryDirectory directory;
  const auto nested = [](std::size_t levels) {
    return "{\"a\": " + std::string(levels - 1, '[') + std::string(levels - 1, ']') + "}\n";
  };
  const fs::path file = directory / "deep.json";
  const auto message = [&] { return message_of<StorageError>([&] { read_json(file).take_all(); }); };
  test_support::write_bytes(file, "{\"a\": \"[[[\"}\n{\"a\": \"]\\\"[\"}\n");
  EXPECT_EQ(read_json(file).count(), 2);
  test_support::write_bytes(file, nested(100));
  EXPECT_EQ(read_json(file).count(), 1);
  test_support::write_bytes(file, "{\"a\": null}\n" + nested(101));
  EXPECT_THAT(message(), AllOf(HasSubstr("deep.json"), HasSubstr("line 2 are nested more than 100 levels deep")));
  test_support::write_bytes(file, "{\"a\": " + std::string(10'000'000, '['));
  EXPECT_THAT(message(), HasSubstr("line 1 are nested more than 100 levels deep"));
}

TEST(JsonText, OfBracketsIsRefusedWhereverTheyStand) {
  constexpr std::size_t kBytes = 400'000;
  const auto repeated = [](std::string_view text) {
    std::string all;
    while (all.size() < kBytes) all += text;
    return all;
  };
  const TemporaryDirectory directory;
  const fs::path file = directory / "deep.json";
  const std::string lines = repeated("{\"a\": \"[{[{\\\"\\\\\", \"b\": [{\"c\": [[]]}]}\n");
  for (const std::string& deep : {
           "{\"a\": " + std::string(kBytes, '['),
           "{\"a\": " + std::string(kBytes, '[') + std::string(kBytes, ']') + "}",
           repeated("{\"a\":"),
           repeated("{\"a\":[") + "\n",
           "{\"a\": \"]]}\", \"b\": " + repeated("[{\"b\": \"]}\", \"a\":"),
           "{\"a\": \"\\\\\", \"b\":" + repeated("["),
           "{\"a\": \"\\\"" + repeated("]") + "\", \"b\":" + repeated("["),
           // The first line does not end its text; Arrow ends a line at either character.
           "{\"a\": \"\n{\"a\":" + repeated("["),
           "{\"a\": \"\r{\"a\":" + repeated("["),
       }) {
    for (const std::string& before : {std::string(), lines, lines + lines + lines + lines}) {
      test_support::write_bytes(file, before + deep);
      EXPECT_THAT(message_of<StorageError>([&] { read_json(file).take_all(); }),
                  HasSubstr("nested more than 100 levels deep"))
          << deep.substr(0, 40) << " behind " << before.size() << " bytes";
    }
  }
  test_support::write_bytes(file, lines + "{\"a\": \"" + repeated("[{") + "\", \"b\": null}\n");
  EXPECT_GT(read_json(file).count(), 1000);
  // Nested objects, with lists between them, in a compressed file.
  const auto codec = arrow::util::Codec::Create(arrow::Compression::GZIP).ValueOrDie();
  const std::string text = "{\"a\": 1}\n" + repeated("{\"a\":[");
  std::string compressed(static_cast<std::size_t>(codec->MaxCompressedLen(std::ssize(text), nullptr)), '\0');
  compressed.resize(static_cast<std::size_t>(
      codec
          ->Compress(std::ssize(text), reinterpret_cast<const std::uint8_t*>(text.data()), std::ssize(compressed),
                     reinterpret_cast<std::uint8_t*>(compressed.data()))
          .ValueOrDie()));
  test_support::write_bytes(directory / "deep.json.gz", compressed);
  EXPECT_THAT(message_of<StorageError>([&] { read_json(directory / "deep.json.gz").take_all(); }),
              HasSubstr("line 2 are nested more than 100 levels deep"));
}

// A Parquet file whose schema is deep: a list of fields, each with its number of children.
class DeepParquet : public ::testing::Test {
 protected:
  // The field's name is "a", and it has one child.
  static constexpr std::string_view kGroupOfOneColumn = "\x18\x01\x61\x15\x02\0"sv;
  // Returns a file without rows, whose one column lies in `levels` groups.
  static std::string file_of(int levels, char repetition) {
    std::string metadata = "\x15\x02\x19\xfc";  // version 1, a list of structs
    put(metadata, levels + 2);
    metadata += std::string("\x48\x01s\x15\x02\0", 6);
    for (int i = 0; i < levels; ++i) metadata += std::string("\x35", 1) + repetition + std::string(kGroupOfOneColumn);
    metadata += std::string("\x15\x02\x25\x02\x18\x01x\0", 8) + std::string("\x16\0\x19\x0c\0", 5);
    std::string file = "PAR1" + metadata;
    for (int shift = 0; shift < 32; shift += 8) file += static_cast<char>(metadata.size() >> shift);
    return file + "PAR1";
  }
  static void put(std::string& bytes, int number) {
    for (; number > 127; number >>= 7) bytes += static_cast<char>(number | 128);
    bytes += static_cast<char>(number);
  }
};

TEST_F(DeepParquet, IsRefusedAndNamed) {
  const TemporaryDirectory directory;
  const fs::path file = directory / "deep.parquet";
  for (const char repetition : {'\x02', '\x04'}) {  // optional, repeated
    test_support::write_bytes(file, file_of(20, repetition));
    EXPECT_EQ(read_parquet(file).count(), 0);
    for (const int levels : {1'000, 100'000, 1'000'000}) {
      test_support::write_bytes(file, file_of(levels, repetition));
      EXPECT_THAT(message_of<StorageError>([&] { read_parquet(file).count(); }), HasSubstr("deep.parquet"));
    }
  }
}

// Arrow's parser crashes on the second text.
TEST(JsonText, WithALineThatIsNoObjectNamesTheLine) {
  const TemporaryDirectory directory;
  const fs::path file = directory / "values.json";
  const auto message = [&] { return message_of<StorageError>([&] { read_json(file).take_all(); }); };
  test_support::write_bytes(file, "{\"a\": 1}\n2\n");
  EXPECT_THAT(message(), AllOf(HasSubstr("values.json"), HasSubstr("line 2 is no JSON object")));
  test_support::write_bytes(file, "null\"\",\n{aab,:");
  EXPECT_THAT(message(), HasSubstr("line 1 is no JSON object; each line has to be one JSON object"));
  test_support::write_bytes(file, " {\"a\": 1} \r\n\n\t{\"a\": 2}");
  EXPECT_EQ(read_json(file).count(), 2);
}

// ---- Datasets of a concat

Batch same_concatenated(const Batch& batch) { return batch; }

TEST(Concat, HasTheColumnsOfAllDatasets) {
  const Dataset left = threads(from_rows({{{"a", 1}, {"x", "p"}}}));
  const Dataset right = threads(from_rows({{{"a", 1.5}, {"b", 3}}}));
  const Dataset both = left.concat({right});
  EXPECT_EQ(both.schema(), (Schema{{{"a", "double"}, {"x", "string"}, {"b", "int64"}}}));
  EXPECT_THAT(both.take_all(),
              ElementsAre(Row{{"a", 1.0}, {"x", "p"}, {"b", Value()}}, Row{{"a", 1.5}, {"x", Value()}, {"b", 3}}));
  EXPECT_EQ(both.count(), 2);
  EXPECT_EQ(both.filter(column("a") > 1).select_columns({"b"}).take_all(), (std::vector<Row>{{{"b", 3}}}));
  EXPECT_EQ(Dataset(Value(both.select_columns({"b"}))).count(), 2);
}

TEST(Concat, NamesDatasetsWhoseTypesDoNotCombine) {
  const Dataset both = range(1).concat({range(1), threads(from_rows({{{"id", "one"}}}))});
  EXPECT_THAT(message_of<InvalidArgument>([&] { both.take(); }),
              AllOf(HasSubstr("the column \"id\" has types in the datasets of concat that do not go together"),
                    HasSubstr("int64 in dataset 1, and string in dataset 3")));
}

TEST(Concat, JoinsRowsOfAColumnThatMayHaveNullsInOneDatasetOnly) {
  const Dataset whole = from_json({arrow::field("x", arrow::int64(), /*nullable=*/false)}, "[[1], [2]]");
  const Dataset with_nulls = from_json({arrow::field("x", arrow::int64())}, "[[null]]");
  for (const Dataset& both : {whole.concat({with_nulls}, SchemaMismatch::refuse),
                              whole.map_batches(fn<same_concatenated>).concat({with_nulls})}) {
    const Batch batch = both.take_batch();
    EXPECT_EQ(batch.num_rows(), 3);
    EXPECT_EQ(batch.null_count("x"), 1);
  }
}

TEST(Concat, OfWhatFunctionsReturnNeedsTheSameColumns) {
  const Dataset made = threads(range(2)).map_batches(fn<same_concatenated>);
  EXPECT_EQ(made.concat({threads(range(3))}).count(), 5);
  EXPECT_THROW(made.concat({threads(from_rows({{{"x", 1}}}))}).take(), StorageError);
}

}  // namespace
}  // namespace cadre::data
