#include "dashboard/change.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/random.h"
#include "cadre/error.h"
#include "dashboard/live_document.h"
#include "report/script_json.h"

namespace cadre::dashboard {
namespace {

Value json(const std::string& text) { return base::parse_json(text, "the test"); }

std::string change(const std::string& before, const std::string& after) {
  const std::optional<Value> found = change_between(json(before), json(after));
  return found ? report::to_script_json(*found) : "none";
}

// ---- What is in a change

TEST(Change, IsNoneBetweenEqualDocuments) {
  EXPECT_EQ(change(R"({"a": [1, {"b": null}], "c": "x"})", R"({"c": "x", "a": [1, {"b": null}]})"), "none");
  EXPECT_FALSE(change_between(list(std::nan(""), 1.5), list(std::nan(""), 1.5)));
}

TEST(Change, HasOnlyTheEntriesThatDiffer) {
  EXPECT_EQ(change(R"({"a": 1, "b": {"c": 2, "d": 3}})", R"({"a": 1, "b": {"c": 2, "d": 4}})"),
            R"({"set":{"b":{"set":{"d":{"=":4}}}}})");
  EXPECT_EQ(change(R"({"a": 1, "b": 2})", R"({"b": 2, "c": 3})"), R"({"cut":["a"],"set":{"c":{"=":3}}})");
}

TEST(Change, AddsTheItemsAtTheEndOfAList) {
  EXPECT_EQ(change("[1, 2]", "[1, 2, 3, 4]"), R"({"add":[3,4]})");
  EXPECT_EQ(change("[1, 2, 3]", "[1, 5]"), R"({"cut":2,"at":[1,{"=":5}]})");
  EXPECT_EQ(change("[[1], [2], [3]]", "[[1, 4], [2, 5], [3, 6]]"),
            R"({"at":[0,{"add":[4]},1,{"add":[5]},2,{"add":[6]}]})");
  EXPECT_EQ(change(R"([[1], [2]])", R"([[1], [2, 3]])"), R"({"at":[1,{"add":[3]}]})");
}

TEST(Change, IsTheWholeListWhereMostOfItDiffers) {
  EXPECT_EQ(change("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", "[0, 0, 0, 0, 0, 0, 0, 0, 9, 10]"),
            R"({"=":[0,0,0,0,0,0,0,0,9,10]})");
}

TEST(Change, OfAnotherTypeIsTheValue) {
  EXPECT_EQ(change(R"({"a": [1]})", R"({"a": {"b": 1}})"), R"({"set":{"a":{"=":{"b":1}}}})");
  EXPECT_EQ(change("1", "1.5"), R"({"=":1.5})");
}

// ---- It leads from one state to the other

Value random_value(base::RandomStream& random, int depth) {
  switch (random.below(depth > 0 ? 6 : 4)) {
    case 0:
      return Value();
    case 1:
      return random.below(3);
    case 2:
      return random.uniform() < 0.3 ? std::nan("") : 0.5;
    case 3:
      return std::string(random.below(3), 'x');
    case 4: {
      List items;
      for (std::uint64_t i = random.below(20); i > 0; --i) items.push_back(random_value(random, depth - 1));
      return items;
    }
    default: {
      Dict entries;
      for (const char* key : {"a", "b", "=", "set", "at", "cut", "add"}) {
        if (random.uniform() < 0.5) entries.emplace_back(key, random_value(random, depth - 1));
      }
      return entries;
    }
  }
}

TEST(Change, LeadsFromAnyStateToAnyOther) {
  base::RandomStream random(7, 0, base::Purpose::own);
  for (int i = 0; i < 3000; ++i) {
    const Value before = random_value(random, 4);
    const Value after = i % 3 == 0 ? before : random_value(random, 4);
    const std::optional<Value> found = change_between(before, after);
    const Value made = found ? changed(before, *found) : before;
    // The order of entries is not kept: no change between the two says that they are the same.
    EXPECT_FALSE(change_between(made, after))
        << report::to_script_json(before) << " -> " << report::to_script_json(after);
  }
}

TEST(Change, ThatDoesNotFitIsRefused) {
  EXPECT_THROW(changed(json("[1]"), json(R"({"at": [3, {"=": 1}]})")), InvalidArgument);
  EXPECT_THROW(changed(json("1"), json(R"({"add": [1]})")), InvalidArgument);
  EXPECT_THROW(changed(json("{}"), json("5")), InvalidArgument);
}

// ---- Documents that grow

TEST(LiveDocument, SendsTheWholeToNewReadersAndChangesToOthers) {
  LiveDocument document("abc");
  EXPECT_EQ(document.since(0).text, "");
  EXPECT_TRUE(document.update(json(R"({"a": [1]})")));
  EXPECT_EQ(document.since(0).text, "event: document\nid: abc-1\ndata: {\"a\":[1]}\n\n");
  EXPECT_FALSE(document.update(json(R"({"a": [1]})")));
  EXPECT_TRUE(document.update(json(R"({"a": [1, 2]})")));
  EXPECT_TRUE(document.update(json(R"({"a": [1, 2, 3]})")));
  const LiveDocument::Sent sent = document.since(1);
  EXPECT_EQ(sent.version, 3);
  EXPECT_EQ(sent.text,
            "event: change\nid: abc-2\ndata: {\"set\":{\"a\":{\"add\":[2]}}}\n\n"
            "event: change\nid: abc-3\ndata: {\"set\":{\"a\":{\"add\":[3]}}}\n\n");
  EXPECT_EQ(document.since(3).text, "");
  EXPECT_EQ(document.since(0).text, "event: document\nid: abc-3\ndata: {\"a\":[1,2,3]}\n\n");
}

TEST(LiveDocument, SendsTheWholeToWhoIsFarBehind) {
  LiveDocument document("abc");
  for (int i = 0; i < 100; ++i) document.update(Value(i));
  EXPECT_TRUE(document.since(1).text.starts_with("event: document\nid: abc-100\n"));
  EXPECT_TRUE(document.since(99).text.starts_with("event: change\nid: abc-100\n"));
}

TEST(LiveDocument, KeepsNoMoreChangesThanItWouldSend) {
  LiveDocument document("abc");
  List items;
  for (std::uint64_t version = 1; version <= 10; ++version) {
    items.emplace_back(std::string(std::size_t{400'000}, 'x'));
    document.update(items);
    if (version > 1) EXPECT_TRUE(document.since(version - 1).text.starts_with("event: change\n"));
  }
  EXPECT_TRUE(document.since(0).text.starts_with("event: document\nid: abc-10\n"));
  // The changes since 7 have less than half of the whole's 4 MB, but had more than 1 MiB before the whole was made.
  EXPECT_TRUE(document.since(8).text.starts_with("event: change\nid: abc-9\n"));
  EXPECT_TRUE(document.since(7).text.starts_with("event: document\nid: abc-10\n"));
}

TEST(LiveDocument, SendsTheWholeAfterItWasForgotten) {
  LiveDocument document("abc");
  document.update(Value(1));
  document.update(Value(2));
  document.clear();
  EXPECT_FALSE(document.has_document());
  EXPECT_EQ(document.since(0).text, "");
  document.update(Value(3));
  EXPECT_EQ(document.since(2).text, "event: document\nid: abc-3\ndata: 3\n\n");
}

TEST(LiveDocument, KnowsOnlyItsOwnVersions) {
  const LiveDocument document("abc");
  EXPECT_EQ(document.version_of("abc-12"), 12);
  for (const char* id : {"", "abc", "abc-", "abd-12", "abc-12x", "abc--1", "abc-99999999999999999999999"})
    EXPECT_EQ(document.version_of(id), 0) << id;
}

}  // namespace
}  // namespace cadre::dashboard
