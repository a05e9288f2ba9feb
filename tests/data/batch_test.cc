#include "cadre/data/batch.h"

#include <arrow/array.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/message_of.h"

namespace cadre::data {
namespace {

using test_support::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Batch, GivesItsNumbersWhereTheyLie) {
  std::vector<double> numbers{1.5, 2.5, 3.5};
  const double* const where = numbers.data();
  const Batch batch{{"x", std::move(numbers)}};
  EXPECT_EQ(batch.values<double>("x").data(), where);
  EXPECT_THAT(batch.values<double>("x"), ElementsAre(1.5, 2.5, 3.5));
}

TEST(Batch, RefusesColumnsOfDifferentLengthsByName) {
  EXPECT_EQ(message_of<InvalidArgument>([] { Batch{{"a", std::vector<int>{1, 2}}, {"b", std::vector<int>{1, 2, 3}}}; }),
            "the columns of a batch have equally many rows, but \"a\" has 2, \"b\" has 3");
}

TEST(Batch, RefusesAColumnThatIsThereTwice) {
  EXPECT_THAT(message_of<InvalidArgument>([] { Batch{{"a", std::vector<int>{1}}, {"a", std::vector<int>{2}}}; }),
              HasSubstr("one column \"a\", not two"));
}

TEST(Batch, ListsItsColumnsWhereOneIsMissing) {
  const Batch batch{{"a", std::vector<int>{1}}, {"b", std::vector<int>{2}}};
  EXPECT_EQ(message_of<InvalidArgument>([&] { batch.values<int>("c"); }),
            "there is no column \"c\"; the columns are: a, b");
}

TEST(Batch, HasNoNumbersOfAnotherType) {
  const Batch batch{{"a", std::vector<std::int32_t>{1}}};
  EXPECT_EQ(message_of<InvalidArgument>([&] { batch.values<double>("a"); }), "column \"a\" is of int32, not of double");
}

TEST(Batch, ConvertsNumbersThatFitAndRefusesOthers) {
  const Batch batch{{"a", std::vector<std::int64_t>{1, 300}}, {"b", std::vector<bool>{true, false}}};
  EXPECT_THAT(batch.to_vector<float>("a"), ElementsAre(1.F, 300.F));
  EXPECT_THAT(batch.to_vector<std::int8_t>("b"), ElementsAre(1, 0));
  EXPECT_EQ(message_of<InvalidArgument>([&] { batch.to_vector<std::uint8_t>("a"); }),
            "column \"a\": 300 does not fit uint8");
}

TEST(Batch, KeepsTheShapeOfRowsInSlices) {
  std::vector<std::uint8_t> pixels(24);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i);
  const Batch batch{{"image", Column(std::move(pixels), {2, 3})}};
  EXPECT_EQ(batch.num_rows(), 4);
  EXPECT_THAT(batch.row_shape("image"), ElementsAre(2, 3));
  EXPECT_THAT(batch.slice(1, 1).values<std::uint8_t>("image"), ElementsAre(6, 7, 8, 9, 10, 11));
}

TEST(Batch, RefusesNumbersThatAreNoRowsOfTheShape) {
  EXPECT_EQ(message_of<InvalidArgument>([] { Column(std::vector<int>(7), {2, 3}); }),
            "7 values cannot be rows of 2 x 3");
}

TEST(Batch, NamesTheColumnWithNulls) {
  const std::vector<Row> rows{{{"a", 1}}, {{"a", Value()}}};
  EXPECT_THAT(message_of<InvalidArgument>([&] { to_batch(rows).values<std::int64_t>("a"); }),
              HasSubstr("column \"a\" has nulls"));
}

TEST(Batch, TakesRowsAndGivesThemBack) {
  const std::vector<Row> rows{{{"a", 1}, {"b", "x"}, {"c", list(1, 2)}, {"d", true}},
                              {{"a", 2.5}, {"b", Value()}, {"c", Value()}, {"d", false}},
                              {{"a", Value()}, {"b", ""}, {"c", List{}}, {"d", true}}};
  const std::vector<Row> expected{{{"a", 1.0}, {"b", "x"}, {"c", list(1, 2)}, {"d", true}}, rows[1], rows[2]};
  EXPECT_EQ(to_batch(rows).rows(), expected);
}

TEST(Batch, NamesRowAndColumnOfAValueThatDoesNotFit) {
  const std::vector<Row> rows{{{"a", 1}}, {{"a", "one"}}};
  EXPECT_THAT(message_of<InvalidArgument>([&] { to_batch(rows); }), HasSubstr("column \"a\": row 1 has \"one\""));
}

TEST(Batch, ReplacesAColumnInItsPlace) {
  const Batch batch{{"a", std::vector<int>{1, 2}}, {"b", std::vector<int>{3, 4}}};
  const Batch changed = batch.with("a", std::vector<double>{0.5, 1.5}).with("c", std::vector<std::string>{"x", "y"});
  EXPECT_THAT(changed.columns(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(changed.values<double>("a"), ElementsAre(0.5, 1.5));
  EXPECT_THAT(changed.texts("c"), ElementsAre("x", "y"));
  EXPECT_EQ(message_of<InvalidArgument>([&] { batch.with("d", std::vector<int>{1}); }),
            "column \"d\" has 1 rows and the batch 2");
}

TEST(Batch, GivesTextsOfASlice) {
  const Batch batch{{"a", std::vector<std::string>{"zero", "one", "two"}}};
  EXPECT_THAT(batch.slice(1, 5).texts("a"), ElementsAre("one", "two"));
}

}  // namespace
}  // namespace cadre::data
