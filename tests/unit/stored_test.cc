#include "cadre/stored.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/json.h"

namespace cadre {
namespace stored_test {

enum class Colour { red, dark_green };
struct Limits {
  std::optional<std::chrono::duration<double>> time = {};
  std::uint64_t memory = 0;
  bool operator==(const Limits&) const = default;
};
struct Circle {
  double radius = 1;
  bool operator==(const Circle&) const = default;
};
struct Nothing {
  bool operator==(const Nothing&) const = default;
};
// With a form of its own.
class Direction {
 public:
  Direction() = default;
  explicit Direction(bool up) : up_(up) {}
  bool operator==(const Direction&) const = default;

 private:
  friend Value stored_form(const Direction& direction) { return direction.up_ ? "up" : "down"; }
  friend void read_stored(Direction& direction, const Stored& stored) {
    direction.up_ = stored.get<std::string>() == "up";
  }
  bool up_ = false;
};
struct Everything {
  bool flag = false;
  std::int64_t number = 0;
  double share = 0;
  std::string text = {};
  Colour colour = Colour::red;
  Limits limits = {};
  std::optional<Limits> other_limits = {};
  std::vector<Limits> many = {};
  std::vector<double> numbers = {};
  std::map<std::string, double> by_name = {};
  std::map<std::int64_t, std::string> by_number = {};
  std::set<std::int64_t> some = {};
  std::pair<double, double> ends = {};
  std::array<std::int64_t, 2> two = {};
  std::variant<Circle, Nothing> shape = {};
  std::vector<std::pair<std::string, Colour>> named = {};
  std::filesystem::path path = {};
  Config config = {};
  Value any = {};
  Direction direction = {};
  bool operator==(const Everything&) const = default;
};
struct WithFunction {
  std::int64_t number = 0;
  std::function<void()> function = {};
};

Everything example() {
  return {.flag = true,
          .number = -3,
          .share = 0.25,
          .text = "a",
          .colour = Colour::dark_green,
          .limits = {.time = std::chrono::duration<double>(1.5), .memory = ~std::uint64_t{0}},
          .other_limits = Limits{.memory = 7},
          .many = {{.memory = 1}, {.memory = 2}},
          .numbers = {1, 2},
          .by_name = {{"x", 1}},
          .by_number = {{3, "y"}},
          .some = {1, 5},
          .ends = {0, 1},
          .two = {4, 5},
          .shape = Nothing(),
          .named = {{"b", Colour::dark_green}, {"a", Colour::red}},
          .path = "some/where",
          .config = {{"lr", 0.1}},
          .any = list(1, "b"),
          .direction = Direction(true)};
}

}  // namespace stored_test

template <>
inline constexpr auto kNotStored<stored_test::WithFunction> = member_list("function");

namespace stored_test {
namespace {

enum class Hidden { first, second };

struct Document {
  std::int64_t format = 2;
  std::string place = {};
};

std::string refusal(const Value& value) {
  try {
    from_stored<Everything>(value, "file");
    return "";
  } catch (const StorageError& error) {
    return error.what();
  }
}

TEST(Stored, AStructComesBack) {
  const Value value = to_stored(example());
  EXPECT_EQ(from_stored<Everything>(value, "file"), example()) << to_json(value);
  EXPECT_EQ(from_stored<Everything>(base::parse_json(to_json(value), "file"), "file"), example());
}

TEST(Stored, KeysAreTheNamesOfMembersAndValues) {
  EXPECT_EQ(to_json(to_stored(Limits{.time = std::chrono::duration<double>(2), .memory = 3})),
            R"({"time": 2.0, "memory": 3})");
  EXPECT_EQ(to_json(to_stored(std::variant<Nothing, Circle>(Circle{2}))), R"({"type": "Circle", "radius": 2.0})");
  EXPECT_EQ(to_json(to_stored(Colour::dark_green)), R"("dark_green")");
}

TEST(Stored, AMemberThatIsMissingKeepsItsDefault) { EXPECT_EQ(from_stored<Circle>(Value{Dict()}, "file"), Circle{1}); }

TEST(Stored, MembersThatAreNotStoredAreNeitherWrittenNorRead) {
  EXPECT_EQ(to_json(to_stored(WithFunction{.number = 2})), R"({"number": 2})");
  EXPECT_THROW(from_stored<WithFunction>(Value{{"function", 1}}, "file"), StorageError);
}

TEST(Stored, WhatDoesNotFitIsRefusedWithItsPlace) {
  EXPECT_NE(refusal({{"number", 1}, {"number", 2}}).find("number: no such member"), std::string::npos);
  EXPECT_EQ(refusal({{"limits", Dict{{"tme", 1}}}}),
            "file: limits/tme: no such member is known, or it is there twice. The store is damaged, or of another "
            "version of Cadre");
  EXPECT_NE(refusal({{"many", list(Dict(), Dict{{"memory", "x"}})}}).find("file: many/1/memory: "), std::string::npos);
  EXPECT_NE(refusal({{"colour", "blue"}}).find("colour: \"blue\" is none of red, dark_green"), std::string::npos);
  EXPECT_NE(refusal({{"shape", Dict{{"type", "Square"}}}}).find("shape: the type \"Square\" is unknown"),
            std::string::npos);
  for (const Value& value :
       {Value{{"flag", 1}}, Value{{"number", "1"}}, Value{{"ends", list(1.0)}}, Value{{"two", list(1)}},
        Value{{"shape", Dict()}}, Value{{"by_name", list()}}, Value{{"by_number", list(list(1))}}, Value{{"limits", 3}},
        Value{{"limits", Dict{{"memory", -1}}}}, Value(1)})
    EXPECT_NE(refusal(value), "") << to_json(value);
}

TEST(Stored, ValuesOfAnEnumerationInAnAnonymousNamespaceHaveNames) {
  EXPECT_EQ(to_json(to_stored(Hidden::second)), R"("second")");
  EXPECT_EQ(from_value<Hidden>("second"), Hidden::second);
  EXPECT_THROW(from_value<Hidden>("third"), InvalidArgument);
}

TEST(Stored, ADocumentOfAnotherFormatOrWithoutAMemberIsRefused) {
  EXPECT_EQ(document_from_value<Document>({{"format", 2}, {"place", "x"}}).place, "x");
  for (const Value& value : {Value{{"format", 1}, {"place", "x"}}, Value{{"place", "x"}}, Value{{"format", 2}},
                             Value{Dict()}, Value{{"format", 2}, {"place", "x"}, {"more", 1}}})
    EXPECT_THROW(document_from_value<Document>(value), InvalidArgument) << to_json(value);
}

TEST(Stored, ChangesAreTheMembersThatAreNotAsUsual) {
  const Limits usual{.memory = 3};
  EXPECT_EQ(to_json(stored_changes(Limits{.memory = 3}, usual)), "{}");
  EXPECT_EQ(to_json(stored_changes(Limits{.memory = 4}, usual)), R"({"memory": 4})");
  Limits read{.memory = 3};
  from_stored(read, Stored(stored_changes(Limits{.time = std::chrono::duration<double>(1), .memory = 3}, usual)));
  EXPECT_EQ(read, (Limits{.time = std::chrono::duration<double>(1), .memory = 3}));
}

}  // namespace
}  // namespace stored_test
}  // namespace cadre
