// Columns whose rows are tensors, without torch.
#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/extension/fixed_shape_tensor.h>
#include <arrow/io/file.h>
#include <arrow/json/from_string.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <parquet/arrow/writer.h>

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

Batch batch_of(const std::shared_ptr<arrow::DataType>& type, const std::string& values) {
  return Batch{{"x", Column(arrow::json::ArrayFromJSONString(type, values).ValueOrDie())}};
}

std::shared_ptr<arrow::KeyValueMetadata> note(const std::string& name, const std::string& content) {
  return arrow::KeyValueMetadata::Make({"ARROW:extension:name", "ARROW:extension:metadata"}, {name, content});
}

void write(const fs::path& file, const std::shared_ptr<arrow::Field>& field, const std::string& values) {
  const auto array = arrow::json::ArrayFromJSONString(field->type(), values).ValueOrDie();
  const auto stream = arrow::io::FileOutputStream::Open(file).ValueOrDie();
  const auto keep_types = parquet::ArrowWriterProperties::Builder().store_schema()->build();
  ASSERT_TRUE(parquet::arrow::WriteTable(*arrow::Table::Make(arrow::schema({field}), {array}),
                                         arrow::default_memory_pool(), stream, 2, parquet::default_writer_properties(),
                                         keep_types)
                  .ok());
  ASSERT_TRUE(stream->Close().ok());
}

TEST(TensorColumns, AreArrowsFixedShapeTensors) {
  const Batch batch{{"x", Column(std::vector<std::int16_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {2, 3})}};
  EXPECT_THAT(batch.type("x"), HasSubstr("arrow.fixed_shape_tensor[value_type=int16, shape=[2,3]"));
  EXPECT_THAT(batch.row_shape("x"), ElementsAre(2, 3));
  EXPECT_EQ(batch.number_type("x"), "int16");
  EXPECT_EQ(batch.value("x", 1), list(list(7, 8, 9), list(10, 11, 12)));
  EXPECT_THAT(batch.slice(1, 1).values<std::int16_t>("x"), ElementsAre(7, 8, 9, 10, 11, 12));
}

TEST(TensorColumns, GoThroughEveryOperatorAndComeBackFromParquet) {
  const TemporaryDirectory directory;
  std::vector<float> numbers;
  for (int number = 0; number < 600; ++number) numbers.push_back(static_cast<float>(number));
  const Dataset rows = from_batches({Batch{{"id", std::vector<std::int64_t>(100)}, {"x", Column(numbers, {3, 2})}}})
                           .with_options({.function_place = FunctionPlace::threads});
  rows.write_parquet(directory / "rows", {.rows_per_row_group = 7});
  const Dataset read = read_parquet(directory / "rows");
  EXPECT_EQ(read.schema(), rows.schema());
  EXPECT_EQ(read.take_batch(100).to_vector<float>("x"), numbers);
  EXPECT_EQ(read.filter(column("id") == 0).count(), 100);
  EXPECT_EQ(read.random_shuffle(1).take_batch(100).row_shape("x"), (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(read.skip(99).take_all().front().at("x"), list(list(594.0, 595.0), list(596.0, 597.0), list(598.0, 599.0)));
  EXPECT_EQ(read.concat({rows}).count(), 200);
  EXPECT_EQ(read.aggregate({count("x")}), (Row{{"count(x)", 100}}));
}

TEST(TensorColumns, AreListsOfOneLength) {
  using namespace arrow;
  const Batch vectors = batch_of(list(float64()), "[[1, 2], [3, 4], [5, 6]]");
  EXPECT_THAT(vectors.row_shape("x"), ElementsAre(2));
  EXPECT_EQ(vectors.number_type("x"), "double");
  EXPECT_THAT(vectors.slice(1, 2).values<double>("x"), ElementsAre(3, 4, 5, 6));
  const Batch nested = batch_of(large_list(fixed_size_list(list(int8()), 2)), "[[[[1], [2]]], [[[3], [4]]]]");
  EXPECT_THAT(nested.row_shape("x"), ElementsAre(1, 2, 1));
  EXPECT_THAT(nested.to_vector<int>("x"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(batch_of(list(list(int8())), "[]").row_shape("x"), ElementsAre(0, 0));
}

TEST(TensorColumns, AreNotListsOfDifferentLengths) {
  using namespace arrow;
  EXPECT_THAT(message_of<InvalidArgument>(
                  [] { static_cast<void>(batch_of(list(float64()), "[[1, 2], [3, 4], [5]]").row_shape("x")); }),
              HasSubstr("column \"x\" has rows of different shapes: row 0 has a list of 2 values, and row 2 one of 1"));
  EXPECT_THAT(message_of<InvalidArgument>(
                  [] { batch_of(list(list(float64())), "[[[1], [2]], [[3], [4, 5]]]").to_vector<double>("x"); }),
              HasSubstr("row 0 has a list of 1 values, and row 1 one of 2"));
  EXPECT_THAT(message_of<InvalidArgument>(
                  [] { static_cast<void>(batch_of(list(float64()), "[[1, null]]").values<double>("x")); }),
              HasSubstr("column \"x\" has nulls"));
}

TEST(TensorColumns, OfRayHaveTheShapeThatItHasNoted) {
  const TemporaryDirectory directory;
  write(directory / "v1.parquet",
        arrow::field("x", arrow::list(arrow::int32()), true, note("ray.data.arrow_tensor", "[2, 1]")),
        "[[1, 2], null, [5, 6]]");
  write(directory / "v2.parquet",
        arrow::field("x", arrow::large_list(arrow::int32()), true, note("ray.data.arrow_tensor_v2", "[2, 1]")),
        "[[7, 8]]");
  const Dataset rows = read_parquet(directory.path());
  EXPECT_THAT(rows.schema().fields.front().type, HasSubstr("arrow.fixed_shape_tensor[value_type=int32, shape=[2,1]"));
  const std::vector<Row> expected{{{"x", list(list(1), list(2))}},
                                  {{"x", Value()}},
                                  {{"x", list(list(5), list(6))}},
                                  {{"x", list(list(7), list(8))}}};
  EXPECT_EQ(rows.take_all(), expected);
  EXPECT_THAT(rows.filter(!is_null(column("x"))).skip(2).take_batch().values<std::int32_t>("x"), ElementsAre(7, 8));
}

TEST(TensorColumns, OfRayWhoseRowsAreNotOfTheirShapeNameTheFile) {
  const TemporaryDirectory directory;
  write(directory / "a.parquet",
        arrow::field("x", arrow::list(arrow::int32()), true, note("ray.data.arrow_tensor", "[3]")), "[[1, 2]]");
  EXPECT_THAT(message_of<StorageError>([&] { read_parquet(directory.path()).take_all(); }), HasSubstr("a.parquet"));
}

TEST(TensorColumns, OfRayOfAnyShapeAreTensorsWhereAllAreAlike) {
  const TemporaryDirectory directory;
  const auto type = arrow::struct_(
      {arrow::field("data", arrow::large_list(arrow::float32())), arrow::field("shape", arrow::list(arrow::int64()))});
  write(directory / "a.parquet", arrow::field("x", type, true, note("ray.data.arrow_variable_shaped_tensor", "2")),
        R"([{"data": [1, 2], "shape": [1, 2]}, {"data": [3, 4], "shape": [1, 2]}, {"data": [5, 6], "shape": [2, 1]}])");
  const Batch batch = read_parquet(directory.path()).take_batch(3);
  EXPECT_THAT(batch.slice(0, 2).row_shape("x"), ElementsAre(1, 2));
  EXPECT_THAT(batch.slice(1, 1).values<float>("x"), ElementsAre(3, 4));
  EXPECT_THAT(message_of<InvalidArgument>([&] { static_cast<void>(batch.row_shape("x")); }),
              AllOf(HasSubstr("column \"x\""), HasSubstr("row 0 is of 1 x 2, and row 2 of 2 x 1")));
}

TEST(TensorColumns, OfDifferentShapesInFilesAreNamed) {
  const TemporaryDirectory directory;
  for (const std::string shape : {"[2, 1]", "[1, 2]"})
    write(directory / (shape + ".parquet"),
          arrow::field("x", arrow::list(arrow::int32()), true, note("ray.data.arrow_tensor", shape)), "[[1, 2]]");
  EXPECT_THAT(message_of<StorageError>([&] { read_parquet(directory.path()).count(); }),
              AllOf(HasSubstr("column \"x\""), HasSubstr("shape=[1,2]"), HasSubstr("shape=[2,1]")));
}

}  // namespace
}  // namespace cadre::data
