#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "base/value_limits.h"

namespace cadre::base {
namespace {

std::string python_float(double value) {
  std::string text;
  append_python_float(text, value);
  return text;
}

// The expected texts are those of repr() in Python 3.11.
TEST(Json, FloatsAreWrittenAsPythonWritesThem) {
  EXPECT_EQ(python_float(0.1), "0.1");
  EXPECT_EQ(python_float(1e-5), "1e-05");
  EXPECT_EQ(python_float(0.0001), "0.0001");
  EXPECT_EQ(python_float(100), "100.0");
  EXPECT_EQ(python_float(1e15), "1000000000000000.0");
  EXPECT_EQ(python_float(1e16), "1e+16");
  EXPECT_EQ(python_float(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(python_float(-0.0), "-0.0");
  EXPECT_EQ(python_float(5e-324), "5e-324");
  EXPECT_EQ(python_float(-123456.789), "-123456.789");
  EXPECT_EQ(python_float(0.00012345), "0.00012345");
  EXPECT_EQ(python_float(9007199254740994), "9007199254740994.0");
  EXPECT_EQ(python_float(-9999999999999998), "-9999999999999998.0");
}

TEST(Json, AnyDoubleReadsBackAsTheSameBits) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const auto value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(std::bit_cast<std::uint64_t>(parse_json(python_float(value), "test").get<double>()),
              std::bit_cast<std::uint64_t>(value))
        << python_float(value);
  }
}

TEST(Json, EveryKindOfValueSurvives) {
  const Value value =
      Dict{{"null", {}},
           {"bools", list(true, false)},
           {"integers", list(std::numeric_limits<std::int64_t>::min(), 0, std::numeric_limits<std::int64_t>::max())},
           {"doubles", list(1.5, std::nan(""), -std::numeric_limits<double>::infinity(), 3.0)},
           {"text", "tab\t quote\" back\\slash \x01 \xc3\xa9 \xf0\x9f\x98\x80"},
           {"nested", {{"empty list", List{}}, {"empty dict", Dict{}}}},
           {"reference", Reference{"checkpoint", "/a/b"}}};
  EXPECT_EQ(parse_json(to_json(value), "test"), value);
}

TEST(Json, ADictionaryThatOnlyLooksLikeAReferenceComesBack) {
  for (const Value& content : {Value(1), Value("text"), Value(), list(), list("kind", 1), list("a", "b", "c")}) {
    const Value value{{"$reference", content}};
    EXPECT_EQ(parse_json(to_json(value), "test"), value) << to_json(value);
  }
}

TEST(Json, ALineLooksAsJsonDumpsWritesIt) {
  EXPECT_EQ(to_json(Value{{"a", 1}, {"b", list(1.0, "x\xc3\xa9\n")}, {"c", Dict{}}}),
            R"({"a": 1, "b": [1.0, "x\u00e9\n"], "c": {}})");
}

TEST(Json, ThePrettyFormSortsItsKeys) {
  EXPECT_EQ(to_pretty_json(Dict{{"b", 1}, {"a", list(1, 2)}, {"c", Dict{}}, {"d", List{}}}),
            "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": 1,\n  \"c\": {},\n  \"d\": []\n}");
}

TEST(Json, ThePrettyFormKeepsTheOrderOfAKeyThatIsThereTwice) {
  Dict entries;
  for (int i = 0; i < 40; ++i) entries.emplace_back(i % 2 == 0 ? "b" : "a", i);
  const Value pretty = parse_json(to_pretty_json(entries), "test");
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(pretty.dict()[i], (Dict::value_type{"a", 2 * i + 1}));
    EXPECT_EQ(pretty.dict()[20 + i], (Dict::value_type{"b", 2 * i}));
  }
}

TEST(Json, TextThatIsNoJsonIsRefusedWithItsPlace) {
  for (const char* text : {"", "{", "{\"a\": }", "[1, 2", "nul", "{\"a\": 1} x", "99999999999999999999", "1e400",
                           "[-1e400]", R"("\ud800")", R"("\ude00")", R"({"\ude00": 1})", "\"\xff\""}) {
    try {
      parse_json(text, "some file");
      FAIL() << text;
    } catch (const StorageError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("some file, offset")) << text;
    }
  }
}

TEST(Json, DeepNestingIsRefusedNotFollowed) {
  EXPECT_THROW(parse_json(std::string(100'000, '['), "test"), StorageError);
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_EQ(to_json(parse_json(nested(max_value_depth), "test")), nested(max_value_depth));
  EXPECT_THROW(parse_json(nested(max_value_depth + 1), "test"), StorageError);
}

TEST(Json, BytesThatAreNoUtf8AreReadAgainAsLatin1) {
  const std::pair<const char*, const char*> texts[] = {
      {"\xed\xa0\x80", "\xc3\xad\xc2\xa0\xc2\x80"},                       // a surrogate
      {"\xf4\x90\x80\x80", "\xc3\xb4\xc2\x90\xc2\x80\xc2\x80"},           // above U+10FFFF
      {"\xc0\xaf", "\xc3\x80\xc2\xaf"},                                   // overlong
      {"\xe2\x82", "\xc3\xa2\xc2\x82"},                                   // truncated
      {"a\xff\xc3\xa9\xed\xa0z", "a\xc3\xbf\xc3\xa9\xc3\xad\xc2\xa0z"}};  // next to valid text
  for (const auto& [text, read] : texts) {
    const std::string json = to_json(Value(text));
    EXPECT_EQ(parse_json(json, "test"), Value(read)) << json;
    EXPECT_EQ(to_json(Value(read)), json);
  }
}

TEST(Json, TextOfAnyBytesCanBeReadAgain) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    std::string text(random() % 12, ' ');
    for (char& c : text) c = static_cast<char>(random() % 2 == 0 ? random() : 0xe0 | random() % 32);
    const std::string json = to_json(Value(text));
    ASSERT_EQ(to_json(parse_json(json, "test")), json);
  }
}

TEST(Json, EveryCutOfATextIsRefused) {
  const std::string whole = to_json(Value{{"a", list(1, 2.5, "text")}, {"b", {{"c", true}}}});
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(parse_json(whole.substr(0, length), "test"), StorageError) << length;
}

}  // namespace
}  // namespace cadre::base
