#include "cadre/value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include "support/message_of.h"

namespace cadre {
namespace {

using cadre::test_support::message_of;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Value, BracesOfPairsAreADictionaryAndListIsAList) {
  const Value dictionary{{"lr", 0.1}, {"epochs", 5}};
  ASSERT_TRUE(dictionary.is_dict());
  EXPECT_EQ(dictionary.dict()[1].second.get<int>(), 5);
  EXPECT_THAT(list(1, 2, 3).get<std::vector<int>>(), ElementsAre(1, 2, 3));
}

TEST(Value, ABoolIsNoNumberAndAPointerIsNoBool) {
  EXPECT_TRUE(Value(true).is_bool());
  EXPECT_TRUE(Value("text").is_string());
  EXPECT_FALSE(Value(true).is_number());
  EXPECT_THROW(static_cast<void>(Value(true).get<double>()), InvalidArgument);
}

TEST(Value, SixtyFourBitIntegersAreExact) {
  constexpr auto large = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(Value(large).get<std::int64_t>(), large);
  EXPECT_THROW(static_cast<void>(Value(std::numeric_limits<std::uint64_t>::max())), InvalidArgument);
  EXPECT_THAT(message_of<InvalidArgument>([] { static_cast<void>(Value(300).get<std::int8_t>()); }), HasSubstr("300"));
}

TEST(Value, EqualityTellsTypesApartAndNanIsItself) {
  EXPECT_EQ(Value(std::nan("")), Value(std::nan("")));
  EXPECT_FALSE(Value(1) == Value(1.0));
  EXPECT_EQ(Value(list(1, "a")), Value(list(1, "a")));
  EXPECT_FALSE(Value(list(1)) == Value(list(2)));
}

TEST(Config, FindsNestedValuesByPath) {
  const Config config{{"model", {{"width", 3}, {"act", {{"name", "relu"}}}}}, {"a/b", 7}};
  EXPECT_EQ(config.get<int>("model/width"), 3);
  EXPECT_EQ(config.get<std::string>("model/act/name"), "relu");
  EXPECT_EQ(config.get<int>("a/b"), 7);
  EXPECT_EQ(config.find("model/height"), nullptr);
}

TEST(Config, AMissingKeyIsNamedWithThoseThatExist) {
  const Config config{{"lr", 0.1}, {"momentum", 0.9}};
  const std::string message = message_of<NotFound>([&] { static_cast<void>(config.get<double>("lrr")); });
  EXPECT_THAT(message, HasSubstr("lrr"));
  EXPECT_THAT(message, HasSubstr("lr, momentum"));
  EXPECT_EQ(config.get<double>("lrr", 0.5), 0.5);
}

TEST(Config, AWrongTypeNamesKeyAndValue) {
  const Config config{{"lr", "fast"}};
  const std::string message = message_of<InvalidArgument>([&] { static_cast<void>(config.get<double>("lr")); });
  EXPECT_THAT(message, HasSubstr("\"lr\""));
  EXPECT_THAT(message, HasSubstr("\"fast\""));
}

TEST(Config, ARepeatedKeyKeepsItsPlaceAndTakesTheLastValue) {
  const Config config{{"a", 1}, {"b", 2}, {"a", 3}};
  EXPECT_EQ(config.size(), 2u);
  EXPECT_EQ(config.begin()->second.get<int>(), 3);
}

TEST(Record, ANumberAtAPathIsADoubleAndAnythingElseIsNone) {
  const Metrics metrics{{"loss", 0.5}, {"steps", 3}, {"name", "x"}, {"flag", true}, {"eval", {{"accuracy", 1}}}};
  EXPECT_EQ(metrics.number("loss"), 0.5);
  EXPECT_EQ(metrics.number("steps"), 3.0);
  EXPECT_EQ(metrics.number("eval/accuracy"), 1.0);
  for (const char* none : {"name", "flag", "eval", "missing"}) EXPECT_EQ(metrics.number(none), std::nullopt) << none;
}

TEST(Dict, AnEntryIsFoundByItsKeyAndNotByAPath) {
  const Dict entries{{"a", 1}, {"b/c", 2}, {"d", {{"e", 3}}}};
  EXPECT_EQ(*find_entry(entries, "b/c"), Value(2));
  EXPECT_EQ(find_entry(entries, "d/e"), nullptr);
  EXPECT_EQ(find_entry(entries, ""), nullptr);
}

}  // namespace
}  // namespace cadre
